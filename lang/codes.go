package lang

// Explanation tells what a code of diagnostics stands for.
type Explanation struct {
	// Code is the code, as in [diag.Diagnostic].
	Code string
	// Meaning says in a few sentences what is wrong.
	Meaning string
	// Example is a small project that has the fault: the text of main.cf, and further files behind lines of the form
	// "-- name --". Without a project.yml among them one stands for it that only has a name and the modulepath libs, unless a
	// line "-- project.yml (missing) --" says that there is none. Files below site-packages stand for installed modules.
	Example string
	// Fixed is the example without the fault, in the same form: the files that are different, and "(missing)" for those that are
	// to be removed.
	Fixed string
	// Mend says how to mend the fault.
	Mend string
}

// Explanations explains the codes of the compiler, in their alphabetical order.
func Explanations() []Explanation {
	return []Explanation{{
		Code: "AmbiguousTypeException",
		Meaning: "A constructor is the value of a relation, its name is not defined in this file, and more than one entity of that name in " +
			"other modules fits the relation.",
		Example: `import m
import o
h = m::Holder(part=Part())
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
-- libs/m/model/_init.cf --
entity Base:
end
entity Part extends Base:
end
entity Holder:
end
Holder.part [1] -- Base
implement Base using std::none
implement Part using std::none
implement Holder using std::none
-- libs/o/module.yml --
name: o
version: 1.0.0
license: none
-- libs/o/model/_init.cf --
import m
entity Part extends m::Base:
end
implement Part using std::none
`,
		Fixed: `import m
import o
h = m::Holder(part=m::Part())
`,
		Mend: "Write the namespace in front of the name: `m::Part()`.",
	}, {
		Code: "AttributeException",
		Meaning: "A value can not be stored in an attribute or a relation. What follows \"caused by\" says why: it has another value already, " +
			"the value has the wrong type, or a relation has more members than its multiplicity allows.",
		Example: `entity Host:
    string name
end
implement Host using std::none
h = Host(name="a")
h.name = "b"
`,
		Fixed: `entity Host:
    string name
end
implement Host using std::none
h = Host(name="a")
`,
		Mend: "Find the two places that the diagnostic names and keep one; or correct the value or the declared type.",
	}, {
		Code:    "CompilerException",
		Meaning: "A fault of the model without a code of its own: a limit that was passed, a resource that can not be exported, or a name that is not allowed.",
		Example: `import my-module
`,
		Fixed: `import my_module
-- libs/my_module/module.yml --
name: my_module
version: 1.0.0
license: none
-- libs/my_module/model/_init.cf --
x = 1
`,
		Mend: "Follow the message. A limit can be raised with `--max-steps`, but most often a loop in the model is behind it.",
	}, {
		Code:    "CompilerRuntimeWarning",
		Meaning: "A typedef has the name of a built-in type, which makes the file hard to read.",
		Example: `typedef string as int matching self > 0
`,
		Fixed: `typedef positive as int matching self > 0
`,
		Mend: "Give the typedef another name.",
	}, {
		Code:    "CycleException",
		Meaning: "An entity is its own parent, directly or through other entities.",
		Example: `entity A extends B:
end
entity B extends A:
end
`,
		Fixed: `entity A:
end
entity B extends A:
end
`,
		Mend: "Take one `extends` of the circle away.",
	}, {
		Code:    "CycleInRelationPrecedencePolicyError",
		Meaning: "The rules of `relation_precedence_policy` in project.yml want a relation to be complete before itself.",
		Example: `entity A:
end
A.x [0:] -- A
A.y [0:] -- A
implement A using std::none
-- project.yml --
name: test
modulepath: libs
relation_precedence_policy:
  - "__config__::A.x before __config__::A.y"
  - "__config__::A.y before __config__::A.x"
`,
		Fixed: `-- project.yml --
name: test
modulepath: libs
relation_precedence_policy:
  - "__config__::A.x before __config__::A.y"
`,
		Mend: "Take one of the rules of the circle away.",
	}, {
		Code:    "DataClassException",
		Meaning: "A dataclass has an index, or an implementation other than `std::none`. Its instances are objects of Python as well, and those know neither.",
		Example: `import m
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
-- libs/m/model/_init.cf --
entity Point extends std::Dataclass:
    int x
    int y
end
implement Point using std::none
index Point(x)
-- libs/m/plugins/__init__.py --
from dataclasses import dataclass

@dataclass(frozen=True)
class Point:
    x: int
    y: int
`,
		Fixed: `-- libs/m/model/_init.cf --
entity Point extends std::Dataclass:
    int x
    int y
end
implement Point using std::none
`,
		Mend: "Remove the index or the implementation, or let the entity extend another one than `std::Dataclass`.",
	}, {
		Code: "DataClassMismatchException",
		Meaning: "An entity that extends `std::Dataclass` and the Python class of its name differ: the class is no frozen dataclass, or the two do not have " +
			"the same attributes with the same primitive types, or the entity has relations.",
		Example: `import m
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
-- libs/m/model/_init.cf --
entity Point extends std::Dataclass:
    int x
    int y
end
implement Point using std::none
-- libs/m/plugins/__init__.py --
from dataclasses import dataclass

@dataclass(frozen=True)
class Point:
    x: int
`,
		Fixed: `-- libs/m/plugins/__init__.py --
from dataclasses import dataclass

@dataclass(frozen=True)
class Point:
    x: int
    y: int
`,
		Mend: "Give both the same attributes: `int`, `float`, `bool`, `string` as `str`, `dict`, lists as `list[int]`, each with `?` as `| None`. Decorate the " +
			"class with `@dataclass(frozen=True)`.",
	}, {
		Code:    "DependencyCycleException",
		Meaning: "Resources require each other in a circle, so that none could be deployed first.",
		Example: `import std::testing
a = std::testing::NullResource(name="a")
b = std::testing::NullResource(name="b")
a.requires = b
b.requires = a
`,
		Fixed: `import std::testing
a = std::testing::NullResource(name="a")
b = std::testing::NullResource(name="b")
a.requires = b
`,
		Mend: "Take one `requires` of the circle away. It may be `provides` seen from the other side.",
	}, {
		Code:    "DirectExecuteException",
		Meaning: "An expression stands where it must have its value at once, as in the condition of a typedef, and can not be had there. It is mostly seen as the cause of an AttributeException.",
		Example: `typedef port as int matching self is defined and self > 0
entity Host:
    port ssh = 22
end
`,
		Fixed: `typedef port as int matching self > 0 and self < 65536
entity Host:
    port ssh = 22
end
`,
		Mend: "Use literals, operators and calls of plugins only, and the variable `self`.",
	}, {
		Code:    "DoubleSetException",
		Meaning: "A variable has a value and is given another one. A variable is assigned once; the same value again does no harm.",
		Example: `port = 80
port = 8080
`,
		Fixed: `secure = true
port = secure ? 8443 : 8080
`,
		Mend: "Use another name for the second value, or decide between them with one conditional expression: `port = secure ? 443 : 80`.",
	}, {
		Code:    "DuplicateException",
		Meaning: "Something is defined twice: an entity, a typedef, an attribute, or an instance that an index finds already with other values.",
		Example: `entity Host:
    string name
end
entity Host:
    string address
end
`,
		Fixed: `entity Host:
    string name
    string address
end
`,
		Mend: "Rename one of the two, or make one of them.",
	}, {
		Code:    "ExplicitPluginException",
		Meaning: "A plugin refused to work with what it was given, and says why.",
		Example: `import m
port = m::port("gopher")
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
-- libs/m/model/_init.cf --
-- libs/m/plugins/__init__.py --
from inmanta.plugins import PluginException, plugin

@plugin
def port(service: "string") -> "int":
    if service != "https":
        raise PluginException("only the port of https is known")
    return 443
`,
		Fixed: `import m
port = m::port("https")
`,
		Mend: "Follow the message of the plugin; correct its arguments.",
	}, {
		Code:    "ExportWarning",
		Meaning: "Something of the model gets lost when resources are exported: a member of a resource set that is no exported resource, or requirements that lead to no resource.",
		Example: `import std::testing
entity Group:
end
implement Group using std::none
g = Group()
a = std::testing::NullResource(name="a")
a.requires = g
`,
		Fixed: `import std::testing
entity Group:
end
implement Group using std::none
g = Group()
a = std::testing::NullResource(name="a")
b = std::testing::NullResource(name="b")
a.requires = b
`,
		Mend: "Have the required instance provide resources through `provides` and `requires`, or take it out.",
	}, {
		Code:    "ExternalException",
		Meaning: "A plugin failed in a way that its author did not foresee. The text behind \"caused by\" is what it failed with.",
		Example: `std::assert(1 == 2, "one is not two")
`,
		Fixed: `std::assert(1 + 1 == 2, "one and one are not two")
`,
		Mend: "Correct the arguments if the text tells which; else report the fault to the author of the module.",
	}, {
		Code:    "HyphenException",
		Meaning: "A name that is being defined has a hyphen in it.",
		Example: `my-name = 1
`,
		Fixed: `my_name = 1
`,
		Mend: "Use an underscore: `my_name`.",
	}, {
		Code:    "IndexAttributeMissingInConstructorException",
		Meaning: "A constructor does not give all attributes that an index of its entity is made of.",
		Example: `entity Host:
    string name
    string site
end
index Host(name, site)
implement Host using std::none
h = Host(name="a")
h.site = "s"
`,
		Fixed: `entity Host:
    string name
    string site
end
index Host(name, site)
implement Host using std::none
h = Host(name="a", site="s")
`,
		Mend: "Give the attributes of the index in the constructor, or a default in the entity.",
	}, {
		Code:    "IndexCollisionException",
		Meaning: "An entity has several indexes, and the attributes of a constructor lead to different instances in them.",
		Example: `entity Host:
    string name
    string address
end
index Host(name)
index Host(address)
implement Host using std::none
a = Host(name="a", address="1")
b = Host(name="b", address="2")
if a.name == "a" and b.name == "b":
    Host(name="a", address="2")
end
`,
		Fixed: `entity Host:
    string name
    string address
end
index Host(name)
index Host(address)
implement Host using std::none
a = Host(name="a", address="1")
b = Host(name="b", address="2")
if a.name == "a" and b.name == "b":
    Host(name="a", address="1")
end
`,
		Mend: "Correct the attribute that belongs to the other instance.",
	}, {
		Code:    "IndexException",
		Meaning: "An index is made of something that can not identify an instance: a list, or a relation that may be empty or have many members.",
		Example: `entity Host:
    string[] names
end
index Host(names)
`,
		Fixed: `entity Host:
    string name
    string[] aliases
end
index Host(name)
`,
		Mend: "Use attributes with a single value and relations with multiplicity 1.",
	}, {
		Code:    "InmantaWarning",
		Meaning: "A module is found both among the installed ones and as a directory of the modulepath; the directory is ignored.",
		Example: `import m
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
-- libs/m/model/_init.cf --
x = 1
-- site-packages/inmanta_plugins/m/model/_init.cf --
x = 2
-- site-packages/inmanta_plugins/m/setup.cfg --
[metadata]
name = inmanta-module-m
version = 2.0.0
license = none
`,
		Fixed: `-- libs/m/module.yml (missing) --
-- libs/m/model/_init.cf (missing) --
`,
		Mend: "Remove one of the two.",
	}, {
		Code:    "InvalidMetadata",
		Meaning: "The file that describes a project or a module can not be understood: it is no YAML, or a setting has a value that it can not have.",
		Example: `x = 1
-- project.yml --
name: [a, b]
`,
		Fixed: `-- project.yml --
name: test
modulepath: libs
`,
		Mend: "Correct the setting that the message names.",
	}, {
		Code:    "InvalidModuleException",
		Meaning: "A directory that should be a module lacks the file that describes it, or it can not be read. Where a module is imported, this is the cause of a ModuleLoadingException.",
		Example: `import m
-- libs/m/model/_init.cf --
x = 1
`,
		Fixed: `-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
`,
		Mend: "Add a module.yml with the name, the version and the license of the module.",
	}, {
		Code:    "InvalidNamespaceAccess",
		Meaning: "A namespace is followed by a dot. The dot is for attributes and relations.",
		Example: `import std
a = std.Entity()
`,
		Fixed: `import std
implement std::Entity using std::none
a = std::Entity()
`,
		Mend: "Use two colons: `std::Entity()`.",
	}, {
		Code:    "InvalidRelationPrecedenceRuleError",
		Meaning: "A rule of `relation_precedence_policy` in project.yml names an entity or a relation that does not exist.",
		Example: `x = 1
-- project.yml --
name: test
modulepath: libs
relation_precedence_policy:
  - "m::A.x before m::A.y"
`,
		Fixed: `entity A:
end
A.x [0:] -- A
A.y [0:] -- A
-- project.yml --
name: test
modulepath: libs
relation_precedence_policy:
  - "__config__::A.x before __config__::A.y"
`,
		Mend: "Correct the rule, or remove it.",
	}, {
		Code:    "InvalidTypeAnnotation",
		Meaning: "The signature of a plugin names something as a type that is none.",
		Example: `import m
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
-- libs/m/model/_init.cf --
implementation part for std::Entity:
end
-- libs/m/plugins/__init__.py --
from inmanta.plugins import plugin

@plugin
def size(x: "m::part") -> "int":
    return 1
`,
		Fixed: `import m
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
-- libs/m/model/_init.cf --
entity Part:
end
-- libs/m/plugins/__init__.py --
from inmanta.plugins import plugin

@plugin
def size(x: "m::Part") -> "int":
    return 1
`,
		Mend: "Use a type of the language, an entity or a typedef in the annotation of the plugin.",
	}, {
		Code:    "KeyException",
		Meaning: "A dictionary has no entry of that key.",
		Example: `ports = {"http": 80}
p = ports["https"]
`,
		Fixed: `ports = {"http": 80}
p = "https" in ports ? ports["https"] : 443
`,
		Mend: "Use one of the keys that the message lists, or ask first: `\"https\" in ports`.",
	}, {
		Code:    "MissingImportException",
		Meaning: "A type of another module is used in a file that does not import it.",
		Example: `a = m::Host()
`,
		Fixed: `import m
a = m::Host()
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
-- libs/m/model/_init.cf --
entity Host:
end
implement Host using std::none
`,
		Mend: "Add `import m` at the top of the file. Each file has its own imports.",
	}, {
		Code: "ModifiedAfterFreezeException",
		Meaning: "A value is added to a relation after something needed the complete relation. The compiler has to decide at some time that a " +
			"relation is complete, and that decision turned out to be wrong. It is mostly seen as the cause of an AttributeException.",
		Example: `entity Site:
end
entity Host:
    string name
end
Site.hosts [0:] -- Host
implement Site using std::none
implement Host using std::none
s = Site()
s.hosts += Host(name="a")
n = std::count(s.hosts)
for i in std::sequence(n):
    s.hosts += Host(name="spare{{i}}")
end
`,
		Fixed: `entity Site:
end
entity Host:
    string name
end
Site.hosts [0:] -- Host
Site.spares [0:] -- Host
implement Site using std::none
implement Host using std::none
s = Site()
s.hosts += Host(name="a")
n = std::count(s.hosts)
for i in std::sequence(n):
    s.spares += Host(name="spare{{i}}")
end
`,
		Mend: "Let what is added to a relation not depend on the relation's own value; or state the order with `relation_precedence_policy` in project.yml.",
	}, {
		Code:    "ModuleDeprecationWarning",
		Meaning: "An imported module says of itself that it should no longer be used.",
		Example: `import m
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
deprecated: true
-- libs/m/model/_init.cf --
x = 1
`,
		Fixed: `import n
-- libs/n/module.yml --
name: n
version: 1.0.0
license: none
-- libs/n/model/_init.cf --
x = 1
`,
		Mend: "Use the module that replaces it; its documentation should say which.",
	}, {
		Code:    "ModuleLoadingException",
		Meaning: "An imported module, or a namespace within one, can not be found or is not valid. The notes say what was tried.",
		Example: `import missing
`,
		Fixed: `import missing
-- libs/missing/module.yml --
name: missing
version: 1.0.0
license: none
-- libs/missing/model/_init.cf --
x = 1
`,
		Mend: "Correct the name, add the module to a directory of the modulepath, or install it.",
	}, {
		Code:    "NotFoundException",
		Meaning: "A name stands for nothing here: no variable, attribute or namespace, or no instance that an index finds.",
		Example: `address = hostname
`,
		Fixed: `hostname = "web1"
address = hostname
`,
		Mend: "Correct the name, or define it. Variables of a block are not seen outside of it.",
	}, {
		Code:    "OptionalValueException",
		Meaning: "An optional relation is read that has no value.",
		Example: `entity A:
end
entity B:
    int x
end
A.other [0:1] -- B
implement A using std::none
implement B using std::none
a = A()
x = a.other.x
`,
		Fixed: `entity A:
end
entity B:
    int x
end
A.other [0:1] -- B
implement A using std::none
implement B using std::none
a = A()
x = a.other is defined ? a.other.x : 0
`,
		Mend: "Ask first: `if a.other is defined:`.",
	}, {
		Code:    "OverflowError",
		Meaning: "The result of a calculation is too large: a float beyond 1.8e308, or an integer of more than a million binary digits.",
		Example: `x = 10.0 ** 400
`,
		Fixed: `x = 10 ** 400
`,
		Mend: "Use smaller numbers, or integers where floats are too small.",
	}, {
		Code:    "ParserException",
		Meaning: "The text does not follow the grammar of the language.",
		Example: `x = = 1
`,
		Fixed: `x = 1
`,
		Mend: "Look at the marked place, and at what comes right before it: an unclosed bracket or string, or a missing `end` or colon.",
	}, {
		Code:    "ParserWarning",
		Meaning: "A string has a backslash before a letter that does not form an escape sequence; the backslash stays in the string.",
		Example: `x = "\d"
`,
		Fixed: `x = r"\d"
`,
		Mend: "Double the backslash, or write a raw string: `r\"\\d\"`.",
	}, {
		Code:    "PluginDeprecationWarning",
		Meaning: "A plugin that should no longer be used is called.",
		Example: `x = std::contains({"a": 1}, "a")
`,
		Fixed: `x = "a" in {"a": 1}
`,
		Mend: "Use what the message names in its place.",
	}, {
		Code: "PluginModuleLoadException",
		Meaning: "The Python code of a module can not be imported: it has a syntax error, needs a package that is not installed or a later Python, " +
			"or running Python is switched off.",
		Example: `import m
-- libs/m/module.yml --
name: m
version: 1.0.0
license: none
-- libs/m/model/_init.cf --
x = 1
-- libs/m/plugins/__init__.py --
import no_such_package
`,
		Fixed: `-- libs/m/plugins/__init__.py --
import json
`,
		Mend: "Read the last line of the traceback. Packages that a module requires are listed in its `requirements.txt`, `setup.cfg` or " +
			"`pyproject.toml` and installed by `intendant module install`; another interpreter is chosen with `--python`.",
	}, {
		Code:    "PluginTypeException",
		Meaning: "An argument of a plugin, or what it returns, is not of the type in the plugin's signature.",
		Example: `x = std::replace(1, "a", "b")
`,
		Fixed: `x = std::replace(string(1), "a", "b")
`,
		Mend: "Pass a value of the expected type; `string(x)`, `int(x)`, `float(x)` and `bool(x)` convert.",
	}, {
		Code:    "ProjectConfigurationWarning",
		Meaning: "A setting of project.yml has no effect, or not the expected one.",
		Example: `x = 1
-- project.yml --
name: test
modulepath: libs
downloadpath: elsewhere
`,
		Fixed: `-- project.yml --
name: test
modulepath: libs
downloadpath: libs
`,
		Mend: "Correct the setting or remove it.",
	}, {
		Code:    "ProjectNotFoundException",
		Meaning: "The directory has no project.yml, so that it is no project.",
		Example: `x = 1
-- project.yml (missing) --
`,
		Fixed: `x = 1
-- project.yml --
name: test
modulepath: libs
`,
		Mend: "Run the command in the project's directory, or give the directory as an argument.",
	}, {
		Code:    "RuntimeException",
		Meaning: "A statement failed: a value has the wrong type, an operator can not work with its operands, or statements wait for each other for ever.",
		Example: `x = int("one")
`,
		Fixed: `x = int("1")
`,
		Mend: "Follow the message; the marked place is the statement that failed.",
	}, {
		Code:    "TypeDeprecationWarning",
		Meaning: "The type `number` is used, which should no longer be.",
		Example: `entity A:
    number n
end
`,
		Fixed: `entity A:
    int n
end
`,
		Mend: "Use `int` or `float`.",
	}, {
		Code:    "TypeError",
		Meaning: "A value is used where its type makes no sense, such as a list that is looked for among the keys of a dictionary.",
		Example: `x = [1] in {"a": 1}
`,
		Fixed: `x = "a" in {"a": 1}
`,
		Mend: "Use a string as the key.",
	}, {
		Code:    "TypeNotFoundException",
		Meaning: "There is no type of that name: no entity, typedef, built-in type or plugin.",
		Example: `a = Host()
`,
		Fixed: `entity Host:
end
implement Host using std::none
a = Host()
`,
		Mend: "Correct the name, define the entity, or write the namespace in front of it.",
	}, {
		Code:    "TypingException",
		Meaning: "What is written can not work for reasons of type, whatever the values will be: an entity without that attribute, a default of the wrong type, a parent that is no entity.",
		Example: `entity Host:
    string name
end
implement Host using std::none
h = Host(name="a", color="red")
`,
		Fixed: `entity Host:
    string name
    string color
end
implement Host using std::none
h = Host(name="a", color="red")
`,
		Mend: "Follow the message; compare with the declaration of the type.",
	}, {
		Code:    "UnexpectedReference",
		Meaning: "A reference, whose value is known only at deployment, is used where the compiler needs the value.",
		Example: `r = std::create_environment_reference("HOME")
x = "home: {{r}}"
`,
		Fixed: `import std::testing
r = std::create_environment_reference("HOME")
x = std::testing::NullResource(name="home", value=r)
`,
		Mend: "Pass the reference on unchanged to an attribute that takes references.",
	}, {
		Code:    "UnsetException",
		Meaning: "An attribute or a variable got no value by the end of the compile. The notes show where a value was expected from.",
		Example: `entity Host:
    string name
end
implement Host using std::none
h = Host()
`,
		Fixed: `entity Host:
    string name
end
implement Host using std::none
h = Host(name="a")
`,
		Mend: "Give the value in the constructor or in an implementation, or declare a default.",
	}, {
		Code:    "ValueError",
		Meaning: "A calculation has no result among the numbers of the language, such as the root of a negative number.",
		Example: `x = (-8) ** 0.5
`,
		Fixed: `x = 8 ** 0.5
`,
		Mend: "Keep the base of a power with a fraction from being negative.",
	}, {
		Code:    "VariableShadowWarning",
		Meaning: "A variable of a block has the name of one outside, which is hidden by it.",
		Example: `x = 1
if true:
    x = 2
end
`,
		Fixed: `x = 1
if true:
    y = 2
end
`,
		Mend: "Give the inner variable another name.",
	}, {
		Code:    "WrappingRuntimeException",
		Meaning: "A plugin met a fault of the model while it worked. The text behind \"caused by\" is that fault.",
		Example: `entity A:
end
A.other [0:1] -- A
implement A using std::none
a = A()
x = std::attr(a, "other")
`,
		Fixed: `entity A:
end
A.other [0:1] -- A
implement A using std::none
a = A()
if a.other is defined:
    x = std::attr(a, "other")
end
`,
		Mend: "Mend the fault behind it.",
	}, {
		Code:    "ZeroDivisionError",
		Meaning: "A number is divided by zero.",
		Example: `x = 1 / 0
`,
		Fixed: `total = 1
n = 0
x = n == 0 ? 0 : total / n
`,
		Mend: "Ask first: `n == 0 ? 0 : total / n`.",
	}}
}
