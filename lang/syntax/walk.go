package syntax

import "fmt"

// Walk calls visit for node and everything in it, in source order, parents first. When visit returns false the parts of
// that node are left out.
//
// Besides statements and expressions it visits every [*Attribute]. Docstrings and names are not nodes of their own.
func Walk(node Node, visit func(Node) bool) {
	if !visit(node) {
		return
	}
	switch n := node.(type) {
	case *Import, *Index, *Literal, *Regex, *VarRef:
	case *Entity:
		for _, a := range n.Attrs {
			Walk(a, visit)
		}
	case *Attribute:
		walkOptional(n.Default, visit)
	case *Implementation:
		WalkStmts(n.Body, visit)
	case *Implement:
		walkOptional(n.When, visit)
	case *Relation:
		walkExprs(n.Annotations, visit)
	case *Typedef:
		walkOptional(n.Constraint, visit)
	case *Assign:
		Walk(n.Target, visit)
		Walk(n.Value, visit)
	case *For:
		Walk(n.Iter, visit)
		WalkStmts(n.Body, visit)
	case *If:
		Walk(n.Cond, visit)
		WalkStmts(n.Then, visit)
		WalkStmts(n.Else, visit)
	case *ExprStmt:
		Walk(n.X, visit)
	case *Interpolation:
		for _, h := range n.Holes {
			Walk(h.Ref, visit)
		}
	case *FString:
		walkParts(n.Parts, visit)
	case *AttrRef:
		Walk(n.X, visit)
	case *List:
		walkExprs(n.Items, visit)
	case *ListComp:
		Walk(n.Value, visit)
		for _, f := range n.Fors {
			Walk(f.Iter, visit)
		}
		walkExprs(n.Conds, visit)
	case *Dict:
		for _, e := range n.Entries {
			Walk(e.Key, visit)
			Walk(e.Value, visit)
		}
	case *Call:
		walkArgs(n.Args, visit)
	case *Construct:
		walkArgs(n.Args, visit)
	case *MapLookup:
		Walk(n.X, visit)
		Walk(n.Key, visit)
	case *IndexLookup:
		walkArgs(n.Args, visit)
	case *ShortLookup:
		Walk(n.X, visit)
		walkArgs(n.Args, visit)
	case *Not:
		Walk(n.X, visit)
	case *Binary:
		Walk(n.X, visit)
		Walk(n.Y, visit)
	case *Cond:
		Walk(n.If, visit)
		Walk(n.Then, visit)
		Walk(n.Else, visit)
	case *IsDefined:
		Walk(n.X, visit)
	case *Member:
		Walk(n.X, visit)
	default:
		panic(fmt.Sprintf("syntax: Walk does not know %T", n))
	}
}

// WalkStmts calls [Walk] for each statement.
func WalkStmts(stmts []Stmt, visit func(Node) bool) {
	for _, s := range stmts {
		Walk(s, visit)
	}
}

func walkExprs(exprs []Expr, visit func(Node) bool) {
	for _, e := range exprs {
		Walk(e, visit)
	}
}

func walkOptional(e Expr, visit func(Node) bool) {
	if e != nil {
		Walk(e, visit)
	}
}

func walkArgs(args []Arg, visit func(Node) bool) {
	for _, a := range args {
		Walk(a.Value, visit)
	}
}

func walkParts(parts []FormatPart, visit func(Node) bool) {
	for _, p := range parts {
		if p.Ref != nil {
			Walk(p.Ref, visit)
		}
		walkParts(p.Spec, visit)
	}
}
