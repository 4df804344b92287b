// Command handler is a handler program for shop::Shelf: it keeps the shelves of a shop in a file. It shows authors of handlers
// what a complete program and its test look like.
package main

import (
	"log"

	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/program"
)

func main() {
	registry, err := newRegistry()
	if err != nil {
		log.Fatal(err)
	}
	program.Main(program.Info{Name: "shop", Version: "1.0.0"}, registry)
}

// newRegistry has the handlers of this program.
func newRegistry() (*sdk.Registry, error) {
	r := sdk.NewRegistry()
	return r, r.Handle("shop::Shelf", sdk.NewCRUD(&shelves{}))
}
