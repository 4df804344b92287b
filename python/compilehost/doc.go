// Package compilehost runs the Python code of modules for the compiler: plugins, the making of resources, dependency managers and
// finalizers.
//
// A [Host] serves one compile. It starts a Python process only if a module has Python code, and keeps it until [Host.Close]. The
// evaluator calls plugins one at a time; while one runs, Python asks back for what it reads of the model. Most answers are sent
// ahead: an instance goes over with the attributes that have a value already, and Python keeps what it has seen, since in the
// language what has a value never gets another one.
//
// Values cross as JSON; intendant_host/bridge.py says in which form.
package compilehost
