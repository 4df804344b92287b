package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// shelf has the attributes of shop::Shelf that agents get.
type shelf struct {
	Name  string   `json:"name"`
	Width int      `json:"width"`
	Goods []string `json:"goods"`
	Stock string   `json:"stock"`
}

// entry is a shelf in the file, which has them by name.
type entry struct {
	Width int      `json:"width"`
	Goods []string `json:"goods"`
}

// shelves handles shop::Shelf.
type shelves struct {
	mu sync.Mutex // guards the files: an agent runs several tasks at once, and shelves of one shop share a file
}

// Read finds the shelf in its shop's file.
func (h *shelves) Read(_ *sdk.Context, want shelf) (shelf, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, err := load(want.Stock)
	if err != nil {
		return shelf{}, false, err
	}
	have, ok := all[want.Name]
	return shelf{Name: want.Name, Width: have.Width, Goods: have.Goods, Stock: want.Stock}, ok, nil
}

// Create puts up the shelf.
func (h *shelves) Create(c *sdk.Context, want shelf) error {
	c.Infof("putting up shelf %s of %d cm", want.Name, want.Width)
	return h.edit(want.Stock, func(all map[string]entry) { all[want.Name] = entry{Width: want.Width, Goods: want.Goods} })
}

// Update changes what differs; here that is no less work than to put up the shelf anew.
func (h *shelves) Update(_ *sdk.Context, _, want shelf, _ model.Diff) error {
	return h.edit(want.Stock, func(all map[string]entry) { all[want.Name] = entry{Width: want.Width, Goods: want.Goods} })
}

// Delete takes the shelf down.
func (h *shelves) Delete(_ *sdk.Context, have shelf) error {
	return h.edit(have.Stock, func(all map[string]entry) { delete(all, have.Name) })
}

// Facts tell how many kinds of goods lie on the shelf.
func (h *shelves) Facts(c *sdk.Context, want shelf) ([]model.Fact, error) {
	have, ok, err := h.Read(c, want)
	if err != nil || !ok {
		return nil, err
	}
	return []model.Fact{{Name: "kinds", Value: strconv.Itoa(len(have.Goods)), Expires: true}}, nil
}

// edit changes a shop's file, as a whole or not at all.
func (h *shelves) edit(path string, change func(map[string]entry)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, err := load(path)
	if err != nil {
		return err
	}
	change(all)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the stock: %w", err)
	}
	next := path + ".new"
	if err := os.WriteFile(next, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the stock: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("writing the stock: %w", err)
	}
	return nil
}

// load reads a shop's file; a shop without one has no shelves yet.
func load(path string) (map[string]entry, error) {
	if !filepath.IsAbs(path) {
		return nil, sdk.Permanent(fmt.Errorf("the stock %q of the shop is not an absolute path", path))
	}
	text, err := os.ReadFile(path) // the model says which
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]entry{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stock: %w", err)
	}
	all := map[string]entry{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, sdk.Permanent(fmt.Errorf("%s is not a stock of shelves: mend or remove it: %w", path, err))
	}
	return all, nil
}
