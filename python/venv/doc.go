// Package venv builds virtual environments of Python and keeps them for whoever asks for the same again.
//
// # Vocabulary
//
// A [Spec] says what an environment consists of: an interpreter, requirements as pip understands them, constraints on what they
// draw in, and the places that packages come from. Its digest names the environment: a [Cache] has one directory per digest, and
// two specifications of the same digest share it, also between processes.
//
//	Ensure ──▶ shared lock ──▶ status file? ──yes──▶ Env
//	                                │no
//	                                ▼
//	                         exclusive lock ──▶ build ──▶ status file ──▶ Env
//
// The status file is written last. A directory without one is what a killed builder left behind: it is removed and built again.
//
// # Builders
//
// The program uv is used if it is there, else the module venv of the interpreter and pip. Where the machine's own configuration
// counts and is one of pip, pip is used, since uv does not read it. Both get the credentials of an index
// from a netrc file that only the owner can read and that is removed afterwards, so that they appear neither on a command line
// nor in what is printed.
//
// # Trust
//
// Requirements are the words of strangers. A line that could be an option of the installer, refers to another file or names an
// environment variable is refused. Installing a package runs its build script, if it has no wheel, as the user of this process and
// with the variables of [Cache].Environ: whoever names an index trusts it, unless [Index].OnlyBinary is set.
package venv
