// Package web carries the console: the built files of the React application in this directory.
package web

import (
	"embed"
	"io/fs"
)

// dist is made by `make web`. A checkout in which the console was never built has only an empty file there, and serves none.
//
//go:embed all:dist
var dist embed.FS

// Files returns the console's files, with index.html at the root.
func Files() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("web: " + err.Error()) // the embedded directory is always there
	}
	return sub
}
