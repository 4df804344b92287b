// Package builtin has the handlers that are shipped in the binary: files, directories, links, commands, services and
// packages of the machine that the agent runs on.
//
// They never follow a symbolic link in the last component of a path, replace files whole or not at all, delete nothing but
// what a resource names, and start no shell that a resource did not ask for.
package builtin
