package template

// expr is an expression.
type expr interface{ at() place }

// place is where a part of a template stands.
type place struct {
	line       int
	start, end int
}

func (p place) at() place { return p }

type (
	// constExpr is a constant.
	constExpr struct {
		place
		value any
	}
	// nameExpr is a variable.
	nameExpr struct {
		place
		name string
	}
	// listExpr is a list or, with tuple, a tuple.
	listExpr struct {
		place
		items []expr
		tuple bool
	}
	// dictExpr is a dictionary.
	dictExpr struct {
		place
		keys, values []expr
	}
	// condExpr is yes if cond else no; no may be missing.
	condExpr struct {
		place
		cond, yes, no expr
	}
	// binaryExpr is an operator with two sides: and, or, +, -, *, /, //, %, **.
	binaryExpr struct {
		place
		op          string
		left, right expr
	}
	// unaryExpr is not, - or +.
	unaryExpr struct {
		place
		op   string
		node expr
	}
	// concatExpr is a ~ b ~ c.
	concatExpr struct {
		place
		items []expr
	}
	// compareExpr is a chain of comparisons.
	compareExpr struct {
		place
		first expr
		ops   []string
		rest  []expr
	}
	// attrExpr is node.name.
	attrExpr struct {
		place
		node expr
		name string
	}
	// itemExpr is node[index].
	itemExpr struct {
		place
		node, index expr
	}
	// sliceExpr is start:stop:step inside brackets.
	sliceExpr struct {
		place
		start, stop, step expr
	}
	// callExpr is node(args).
	callExpr struct {
		place
		node expr
		args arguments
	}
	// filterExpr is node|name(args); node is missing in a filter block.
	filterExpr struct {
		place
		node expr
		name string
		args arguments
	}
	// testExpr is node is name(args).
	testExpr struct {
		place
		node expr
		name string
		args arguments
	}
)

// arguments are those of a call.
type arguments struct {
	positional []expr
	names      []string
	named      []expr
	star       expr
	starStar   expr
}

// stmt is a statement, text or output.
type stmt interface{ at() place }

type (
	textStmt struct {
		place
		text string
	}
	outputStmt struct {
		place
		value expr
	}
	forStmt struct {
		place
		target    expr
		iter      expr
		filter    expr
		recursive bool
		usesLoop  bool
		body      []stmt
		otherwise []stmt
	}
	ifStmt struct {
		place
		cond      expr
		body      []stmt
		otherwise []stmt
	}
	setStmt struct {
		place
		target expr
		value  expr
	}
	setBlockStmt struct {
		place
		target expr
		filter expr
		body   []stmt
	}
	withStmt struct {
		place
		targets []expr
		values  []expr
		body    []stmt
	}
	macroStmt struct {
		place
		name     string
		params   []string
		defaults []expr
		body     []stmt
		uses     map[string]bool
	}
	callStmt struct {
		place
		call  *callExpr
		macro *macroStmt
	}
	filterStmt struct {
		place
		filter expr
		body   []stmt
	}
	includeStmt struct {
		place
		template      expr
		ignoreMissing bool
		withContext   bool
	}
	importStmt struct {
		place
		template    expr
		target      string
		withContext bool
	}
	fromStmt struct {
		place
		template       expr
		names, aliases []string
		withContext    bool
	}
	extendsStmt struct {
		place
		template expr
	}
	blockStmt struct {
		place
		name     string
		scoped   bool
		required bool
		body     []stmt
	}
	autoescapeStmt struct {
		place
		value expr
		body  []stmt
	}
)

// parsed is a template as a tree.
type parsed struct {
	name   string
	source string
	body   []stmt
	blocks map[string]*blockStmt
	// calls are the filters and tests without which the template can not be used.
	calls []filterUse
}
