package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
)

// Loc is a place in a source file, in the form in which the language names places: a line, or a range within it.
type Loc struct {
	File  *syntax.File
	Place syntax.Place
}

// SameFile reports whether two places are in the same file. A place in what is declared may be in an earlier version of the file,
// in which it is at the same line and column.
func (l *Loc) SameFile(o *Loc) bool {
	return l.File == o.File || l.File != nil && o.File != nil && l.File.Name == o.File.Name
}

// Line is the line, counting from 1.
func (l *Loc) Line() int {
	if l.File == nil {
		return 1
	}
	return l.File.Line(l.Place.Start)
}

// String is the place as messages write it: file:line or file:line:column.
func (l *Loc) String() string {
	if l == nil || l.File == nil {
		return "internal:1"
	}
	return l.File.Location(l.Place)
}

// Range is the place for diagnostics.
func (l *Loc) Range() diag.Range {
	if l == nil || l.File == nil {
		return diag.Range{}
	}
	return l.File.Range(l.Place.Span)
}

// FileLine is the place as file:line.
func (l *Loc) FileLine() string {
	if l == nil || l.File == nil {
		return "internal:1"
	}
	return fmt.Sprintf("%s:%d", l.File.Name, l.Line())
}

func sameLoc(a, b *Loc) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || !a.SameFile(b) || a.Place.LineOnly != b.Place.LineOnly {
		return false
	}
	if a.Place.LineOnly {
		return a.Line() == b.Line()
	}
	return a.Place == b.Place
}

// Fault is an error of the model. It knows by which statement it was reported and what caused it, since both decide the
// place at which the user is told of it.
type Fault struct { //nolint:errname // a fault is of the model; errors are of the program
	// Class is the name of the exception class in the language specification, section 13.2.
	Class string
	// Msg is the text, without places.
	Msg string
	// At is the place of the fault; nil while nobody knows it.
	At *Loc
	// Shown is where a fault without a place is shown to the user.
	Shown *Loc
	// Other is a second place: the earlier definition, the first assignment.
	Other *Loc
	// OtherMsg says what is at Other.
	OtherMsg string
	// Outside is the place of a fault in a file that is not written in the language.
	Outside diag.Range
	// Tight is the expression at fault, within the statement at At or elsewhere; nil when At says enough.
	Tight *Loc
	// Notes are further places that explain the fault, in the order in which they should be read.
	Notes []Note
	// Causes are the faults behind this one.
	Causes []*Fault
	// Hint says how to mend the fault.
	Hint string
	// Imp sorts the faults of one report; lower is more important.
	Imp int
	// FromType says that a typedef reported the fault.
	FromType bool
	// Unset is set for faults that wait for a variable rather than end the compile; opaque here.
	Unset any

	stmtAt  *Loc
	hasStmt bool
}

// Note is a place that explains a fault.
type Note struct {
	At  *Loc
	Msg string
}

// importance of the classes (language specification, section 13.2).
var importance = map[string]int{
	"TypeNotFoundException": 20, "MissingImportException": 20, "AmbiguousTypeException": 20, "NotFoundException": 20,
	"TypingException": 10, "DirectExecuteException": 11, "IndexException": 10, "CycleException": 10,
	"IndexAttributeMissingInConstructorException": 10, "IndexCollisionException": 10, "DuplicateException": 40,
	"DoubleSetException": 51, "ModifiedAfterFreezeException": 50, "OptionalValueException": 61, "KeyException": 70,
	"ExplicitPluginException": 60, "ExternalException": 60, "InvalidTypeAnnotation": 10, "ModuleLoadingException": 5,
}

// New returns a fault reported by the statement at loc; loc may be nil when the statement is not known yet.
func New(class string, loc *Loc, format string, args ...any) *Fault {
	f := &Fault{Class: class, Msg: fmt.Sprintf(format, args...), At: loc, stmtAt: loc, hasStmt: loc != nil, Imp: 100}
	if n, ok := importance[class]; ok {
		f.Imp = n
	}
	return f
}

// Located returns a fault at loc that no statement has reported yet.
func Located(class string, loc *Loc, format string, args ...any) *Fault {
	f := New(class, nil, format, args...)
	f.At = loc
	return f
}

// Wrap returns a fault of the class that cause brought about, reported by the statement at loc. With a nil loc the statement
// is that of the cause.
func Wrap(class string, loc *Loc, cause *Fault, format string, args ...any) *Fault {
	if loc == nil {
		loc = cause.stmtAt
	}
	f := New(class, loc, format, args...)
	f.Imp = cause.Imp + 1
	f.Causes = []*Fault{cause}
	return f
}

// Error is the text of the fault with its place.
func (f *Fault) Error() string {
	if f.At == nil {
		return f.Msg
	}
	return f.Msg + " (" + f.At.String() + ")"
}

// By records that the statement at loc reports the fault. Without replace only a fault that no statement has reported takes
// it on. The place of the fault follows the statement unless it was set apart from it.
func (f *Fault) By(loc *Loc, replace bool) *Fault {
	for _, c := range f.Causes {
		c.By(loc, replace)
	}
	if replace || !f.hasStmt {
		if f.At == nil || f.hasStmt && sameLoc(f.At, f.stmtAt) {
			f.At = loc
		}
		f.stmtAt, f.hasStmt = loc, true
	}
	return f
}

// Place sets the place when there is none.
func (f *Fault) Place(loc *Loc) *Fault {
	if f.At == nil {
		f.At = loc
	}
	return f
}

// Force sets the statement and the place, whatever they were.
func (f *Fault) Force(loc *Loc) *Fault {
	f.By(loc, true)
	f.At = loc
	return f
}

// On sets the expression at fault. One that is set already is closer to the fault and stays.
func (f *Fault) On(at *Loc) *Fault {
	if f.Tight == nil {
		f.Tight = at
	}
	return f
}

// Note adds a place that explains the fault.
func (f *Fault) Note(at *Loc, format string, args ...any) *Fault {
	f.Notes = append(f.Notes, Note{at, fmt.Sprintf(format, args...)})
	return f
}

// HasStmt reports whether a statement has reported the fault.
func (f *Fault) HasStmt() bool { return f.hasStmt }

// Root is the innermost cause.
func (f *Fault) Root() *Fault {
	for len(f.Causes) > 0 {
		f = f.Causes[0]
	}
	return f
}

// Diagnostic is the fault for the user: the whole chain of causes in the text, their places as related ones.
func (f *Fault) Diagnostic() diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: f.Class, Message: strings.TrimRight(f.Msg, "\n"), Hint: f.Hint}
	at := cmp.Or(f.At, f.Shown)
	tight, elsewhere := f.Spot()
	if d.Range = f.Outside; tight != nil {
		d.Range = tight.Range()
	}
	if elsewhere != nil {
		d.Related = append(d.Related, diag.Related{Range: elsewhere.Range(), Message: "by this value"})
	}
	f.relate(&d)
	var causes func(cs []*Fault)
	causes = func(cs []*Fault) {
		for _, c := range cs {
			d.Message += "\ncaused by: " + strings.TrimRight(c.Msg, "\n")
			if d.Hint == "" {
				d.Hint = c.Hint
			}
			if c.At != nil && !sameLine(c.At, at) && !sameLine(c.At, elsewhere) {
				d.Related = append(d.Related, diag.Related{Range: c.At.Range(), Message: c.role()})
			}
			c.relate(&d)
			causes(c.Causes)
		}
	}
	causes(f.Causes)
	f.note(&d)
	if d.Range.IsZero() && len(d.Related) > 0 {
		d.Range = d.Related[0].Range
	}
	d.Message = shorten(d.Message)
	return d
}

// maxMessage bounds the text of a fault, in bytes: it may quote a value of any length.
const maxMessage = 256 << 10

// shorten takes the middle out of a text that is too long.
func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage/2], "") + "\n[...]\n" + strings.ToValidUTF8(text[len(text)-maxMessage/2:], "")
}

// Spot is the tightest place that is known for the fault on the line that it is reported for. The expression at fault is given
// apart when it is on another line.
func (f *Fault) Spot() (best, elsewhere *Loc) {
	at := cmp.Or(f.At, f.Shown)
	best = at
	for g := f; ; g = g.Causes[0] {
		switch {
		case g.Tight != nil && (at == nil || sameLine(g.Tight, at)):
			return g.Tight, nil
		case g.Tight != nil:
			return best, g.Tight
		case g != f && g.At != nil && at != nil && sameLine(g.At, at) && g.At.within(best):
			best = g.At
		}
		if len(g.Causes) == 0 {
			return best, nil
		}
	}
}

// within reports whether the place lies in another one.
func (l *Loc) within(o *Loc) bool {
	return l.SameFile(o) && l.Place.Start >= o.Place.Start && l.Place.End <= o.Place.End
}

func sameLine(a, b *Loc) bool {
	return a == b || a != nil && b != nil && a.SameFile(b) && a.Line() == b.Line()
}

// role says what the place of a cause has to do with the fault that it brought about.
func (f *Fault) role() string {
	switch {
	case f.FromType:
		return "the type is defined here"
	case f.Class == "DoubleSetException":
		return "set again here"
	case f.Class == "ModifiedAfterFreezeException":
		return "added here"
	}
	return "while this was done"
}

func (f *Fault) relate(d *diag.Diagnostic) {
	if f.Other != nil && f.Other.File != nil {
		d.Related = append(d.Related, diag.Related{Range: f.Other.Range(), Message: f.OtherMsg})
	}
}

// note adds the notes of the causes, then those of the fault.
func (f *Fault) note(d *diag.Diagnostic) {
	for _, c := range f.Causes {
		c.note(d)
	}
	for _, n := range f.Notes {
		if n.At == nil || n.At.File != nil {
			d.Related = append(d.Related, diag.Related{Range: n.At.Range(), Message: n.Msg})
		}
	}
}

// DidYouMean asks whether one of the candidates was meant by a name; empty when none is close. What it offers has the prefix
// in front.
func DidYouMean(prefix, name string, candidates []string) string {
	near := diag.Suggest(name, candidates, maxNear)
	if len(near) == 0 {
		return ""
	}
	for i := range near {
		near[i] = prefix + near[i]
	}
	return "did you mean " + strings.Join(near, " or ") + "?"
}

// maxNear bounds how many names a hint offers.
const maxNear = 2

// SortFaults orders faults as the language reports several: by importance, then by file and line.
func SortFaults(fs []*Fault) {
	key := func(f *Fault) (string, int) {
		if f.At == nil || f.At.File == nil {
			return "", 0
		}
		return f.At.File.Name, f.At.Line()
	}
	slices.SortStableFunc(fs, func(a, b *Fault) int {
		if a.Imp != b.Imp {
			return a.Imp - b.Imp
		}
		af, al := key(a)
		bf, bl := key(b)
		if c := strings.Compare(af, bf); c != 0 {
			return c
		}
		return al - bl
	})
}
