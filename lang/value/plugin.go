package value

import "io"

// Plugin is a function that models call: Go code of the standard modules, or a Python function behind the bridge.
type Plugin struct {
	// Name is the qualified name, such as std::count.
	Name string
	// Params are the declared parameters, in order.
	Params []Param
	// Returns is the type of the result in the notation of [Param].Type; empty or any for no check, null for none.
	Returns string
	// AllowUnknown lets Unknown through as a top-level argument. Otherwise a call with one is skipped and gives Unknown.
	AllowUnknown bool
	// Deprecated names what to use instead, or is [NoReplacement]; not empty means that each use is warned about.
	Deprecated string
	// File and Line are the place at which a plugin is defined whose code is not part of the program; empty and 0 otherwise.
	File string
	Line int
	// Call runs the plugin. args has one value for each of Params: the given or default value, for VarPositional a *List,
	// for VarKeyword a *Dict. It may run again from the start after it returned an [*UnsetError]. Errors that it may
	// return: *UnsetError, *UnknownError, *OptionalError, *PluginError for a fault that the plugin's author foresaw; any
	// other error is reported as an unforeseen failure of the plugin.
	Call func(c Context, args []Value) (Value, error)
}

// NoReplacement is what [Plugin].Deprecated says of a plugin that nothing replaces.
const NoReplacement = "-"

// Param is a declared parameter of a [Plugin].
type Param struct {
	Name string
	// Type is a type of the language as text: any, string, int, int[], dict?, std::port, std::File, "string | int".
	Type string
	// Default is the value of an argument left out; nil makes the parameter mandatory.
	Default Value
	Kind    ParamKind
}

// ParamKind says how arguments reach a parameter, as in Python.
type ParamKind uint8

// The kinds of parameters.
const (
	PositionalOrKeyword ParamKind = iota
	KeywordOnly
	VarPositional
	VarKeyword
)

// PluginError is a fault that the author of a plugin raises on purpose; its text is shown to the user as it is.
type PluginError struct {
	// Message is the text for the user.
	Message string
	// Class is the name of the exception class for machine-readable reports; empty means PluginException.
	Class string
}

func (e *PluginError) Error() string { return e.Message }

// ModelError is a fault of the model that a plugin met, such as a variable that is not there. The evaluator reports it as the cause
// of a WrappingRuntimeException.
type ModelError struct {
	// Class is the code of the diagnostic.
	Class string
	// Err is what is wrong.
	Err error
}

func (e *ModelError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// Context is what the compiler lends a plugin during one call. It is valid only until the call returns.
type Context interface {
	// Stdout takes what the plugin prints.
	Stdout() io.Writer
	// Namespace is the namespace in which the call is written, such as web::server.
	Namespace() string
	// Location is the place of the call as file:line.
	Location() string
	// ReadFile reads a file of a module. dir is "templates" or "files"; path is module/relative, or ./relative for the
	// calling module. It fails when the path leaves the module, and with an fs.ErrNotExist when there is no such file or module.
	ReadFile(dir, path string) ([]byte, error)
	// ListFiles lists the names of the files directly in a module's directory, sorted.
	ListFiles(dir, path string) ([]string, error)
	// Lookup resolves a variable as the statement of the call would: block scopes, the instance, then the file.
	// ok is false when there is no such variable; err is *UnsetError when it has no value yet.
	Lookup(name string) (v Value, ok bool, err error)
	// Plugin finds a plugin by qualified name: templates call them as filters and functions.
	Plugin(name string) (*Plugin, bool)
	// Validate checks v against a type given by name in the namespace of the call. found is false when there is no such type.
	Validate(typeName string, v Value) (found bool, err error)
	// Resource gives the id of the resource that the exporter would make of an instance (without a version); ok is false
	// when it makes none.
	Resource(i Instance) (id string, ok bool, err error)
	// Input reads an input of the compile: a fact, a parameter, an environment variable, a setting. What was read is
	// recorded, so that equal inputs give equal results. ok is false when there is none.
	Input(kind InputKind, name string) (v string, ok bool)
	// Await records that the compile needs an input that is not there yet, and returns the Unknown to use in its place.
	Await(kind InputKind, name, resource string) *Unknown
	// AddFile puts content into the file storage of the exported version and returns its address, the SHA-1 in hex.
	AddFile(content []byte) string
	// Random returns n bytes that depend only on the compile's recorded seed and on purpose.
	Random(purpose string, n int) []byte
}

// InputKind is a kind of input of a compile.
type InputKind string

// The kinds of inputs. A fact is named <resource id>/<fact>; settings are environment-id, environment-name, server-address,
// server-port, server-ssl, server-ca, server-token:<client types>, now (RFC 3339).
const (
	InputFact      InputKind = "fact"
	InputParameter InputKind = "parameter"
	InputEnv       InputKind = "env"
	InputSetting   InputKind = "setting"
)
