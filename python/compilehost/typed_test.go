package compilehost_test

import (
	"os"
	"testing"
)

// The module of python/testdata/typed, which type checkers read as its author's would, is a module that works.
func TestTypedModule(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("../testdata/typed/inmanta_plugins/shelf/__init__.py")
	if err != nil {
		t.Fatal(err)
	}
	o := compile(t, `
-- main.cf --
import shelf
s = shelf::Shelf(name="s", host=shelf::Host(name="h"))
a = shelf::Book(title="a", pages=10, content="text", shelf=s, owner=shelf::Person(name="p"))
b = shelf::Book(title="b", pages=20, content=null, shelf=s)
best = shelf::thickest([a, b])
std::print(best.title)
std::print(shelf::thickest([a, b], least=30))
std::print(shelf::owner(a))
std::print(shelf::owner(b))
std::print(shelf::kinds())
std::print(shelf::known(1))
for l in shelf::labelled(shelf::Label(text="x"), 3, {"k": "v"}):
    std::print("{{l.text}} {{l.colour}}")
end
-- libs/shelf/model/_init.cf --
import std
entity Host:
    string name
end
entity Person:
    string name
end
entity Shelf extends std::Resource:
    string name
end
entity Book extends std::PurgeableResource, std::ManagedResource:
    string title
    int pages
    string? content
end
entity Label extends std::Dataclass:
    string text
    string colour = "white"
end
entity Scan extends std::DiscoveryResource:
    string name
end
Shelf.host [1] -- Host
Book.shelf [1] -- Shelf.books [0:]
Book.owner [0:1] -- Person.books [0:]
implement Host using std::none
implement Person using std::none
implement Shelf using std::none
implement Book using std::none
implement Label using std::none
implement Scan using std::none
-- libs/shelf/plugins/__init__.py --
`+string(code), nil)
	o.printed(t, "b\nNone\np\nnobody\n0 1 books 2\nTrue\nxxx white\nk white")
	if len(o.State.Intents) != 1 || o.State.Intents[0].Resource != "shelf::Book[h,title=a]" {
		t.Errorf("the resources are %v", o.State.Intents)
	}
}
