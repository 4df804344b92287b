// Package lang is the modelling language as a whole: [Compile] turns a project into the desired state that an export stores.
//
// A compile reads a tree of files and its options and nothing else: no clock, no network, no environment, no randomness. Facts,
// parameters, environment variables and settings are inputs, handed in by the caller and listed in the result, so that equal
// inputs give equal bytes. What the model does wrong is a diagnostic; a Go error means a cancelled context or a fault of ours.
//
// docs/language/spec.md is the language; testdata/spec has the cases that hold its rules.
//
// The phases are packages of their own: module loads and parses, check gives names their meaning, eval runs the model. The
// exporter in this package turns instances into resources by the registry of [ResourceType].
package lang
