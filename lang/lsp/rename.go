package lsp

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/xref"
)

// prepareRename says whether what is at the cursor can be renamed, and what its name is.
func prepareRename(_ context.Context, r *request) (any, error) {
	c, err := r.cursor()
	if err != nil {
		return nil, err
	}
	if c == nil || c.use == nil {
		return nil, failf(codeRequestFailed, "there is nothing here that can be renamed")
	}
	if err := c.index.CanRename(c.use.Symbol, c.snap.fixed); err != nil {
		return nil, renameFault(err)
	}
	return prepareRenameResult{r.enc.span(c.file.Tree, c.use.Span), c.use.Symbol.Name}, nil
}

func renameFault(err error) error {
	if refused, ok := errors.AsType[*xref.RenameError](err); ok {
		return failf(codeRequestFailed, "%s", refused.Message)
	}
	return err
}

// rename gives a symbol another name, in all files of the project.
func rename(ctx context.Context, r *request) (any, error) {
	var p struct {
		NewName string `json:"newName"`
	}
	if err := r.bind(&p); err != nil {
		return nil, err
	}
	c, err := r.cursor()
	if err != nil {
		return nil, err
	}
	if c == nil || c.use == nil {
		return nil, failf(codeRequestFailed, "there is nothing here that can be renamed")
	}
	s := c.use.Symbol
	spans, err := c.index.Rename(ctx, s, p.NewName, c.snap.fixed)
	if err != nil {
		return nil, renameFault(err)
	}
	out := workspaceEdit{map[string][]textEdit{}}
	for f, list := range spans {
		uri := r.uri(c.snap, f)
		for _, at := range list {
			out.Changes[uri] = append(out.Changes[uri], textEdit{r.enc.span(f.Tree, at), p.NewName})
		}
	}
	r.renamePolicy(c, s, p.NewName, out)
	if len(spans) > 0 {
		r.mentions(ctx, c, s)
	}
	return out, nil
}

// maxMentions bounds the files that a message about a renaming names.
const maxMentions = 5

// mentions tells of files that a renaming does not change although they have the name: templates, and the Python code of
// modules. Whether they mean the same can not be told.
func (r *request) mentions(ctx context.Context, c *cursor, s *xref.Symbol) {
	if s.Kind != xref.Attribute && s.Kind != xref.Relation && s.Kind != xref.Entity && s.Kind != xref.Typedef {
		return
	}
	word := regexp.MustCompile(`\b` + s.Name + `\b`)
	p := c.snap.project
	var found []string
	seen := 0
	_ = fs.WalkDir(p.tree, ".", func(name string, d fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return nil //nolint:nilerr // what can not be read is not changed either
		case seen > maxProjectFiles || len(found) > maxMentions || ctx.Err() != nil:
			return fs.SkipAll
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "__pycache__"):
			return fs.SkipDir
		case !d.Type().IsRegular() || path.Ext(name) != ".py" && !strings.Contains("/"+name, "/templates/"):
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxPluginFile {
			return nil //nolint:nilerr // see above
		}
		if text, err := fs.ReadFile(p.tree, name); err == nil && word.Match(text) {
			found = append(found, name)
		}
		return nil
	})
	if len(found) == 0 {
		return
	}
	more := ""
	if len(found) > maxMentions {
		found, more = found[:maxMentions], " and more"
	}
	text := "These files mention " + s.Name + " too and are not changed: " + strings.Join(found, ", ") + more
	if err := r.server.conn.notify("window/showMessage", map[string]any{"type": 2, "message": text}); err != nil {
		r.server.log.Warn("a message could not be shown", "error", err)
	}
}

// renamePolicy renames what the precedence policy in project.yml names: entities and relations.
func (r *request) renamePolicy(c *cursor, s *xref.Symbol, name string, out workspaceEdit) {
	if c.snap.state == nil || c.snap.project.kind != wholeProject || c.snap.state.program.Manifest == nil {
		return
	}
	rules := c.snap.state.program.Manifest.Precedence
	if len(rules) == 0 {
		return
	}
	text, err := fs.ReadFile(c.snap.project.tree, module.ManifestFile)
	if err != nil {
		return
	}
	content, _ := lines(text)
	uri := uriOf(c.snap.project.root + "/" + module.ManifestFile)
	owners := map[string]bool{}
	for _, m := range c.index.Family(s) {
		if m.Owner != nil {
			owners[m.Owner.FullName()] = true
		}
	}
	for _, rule := range rules {
		line := rule.Range.Start.Line - 1
		if line < 0 || line >= len(content) {
			continue
		}
		off := strings.Index(content[line], rule.Text)
		if off < 0 {
			continue
		}
		for i, end := range []module.RelationName{rule.First, rule.Then} {
			whole := end.String()
			at := strings.Index(rule.Text, whole)
			if i == 1 {
				at = strings.LastIndex(rule.Text, whole)
			}
			from := off + at
			switch {
			case s.Kind == xref.Relation && owners[end.Entity] && end.Relation == s.Name:
				from += len(end.Entity) + 1
			case s.Kind == xref.Entity && end.Entity == s.FullName():
				from += len(end.Entity) - len(s.Name)
			default:
				continue
			}
			start := position{line, r.enc.count([]byte(content[line][:from]))}
			stop := position{line, start.Character + r.enc.count([]byte(s.Name))}
			out.Changes[uri] = append(out.Changes[uri], textEdit{lspRange{start, stop}, name})
		}
	}
}
