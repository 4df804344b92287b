package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
)

// newExplainCommand explains the codes of diagnostics.
func newExplainCommand() *cobra.Command {
	var reference bool
	cmd := &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain a code of the compiler's diagnostics, or list all codes",
		Long: `Print what a code of the compiler's diagnostics stands for, a small project that has the fault, how to mend it, and the same
without it. Upper and lower case are the same. Without a code all are listed.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all := lang.Explanations()
			switch {
			case reference && len(args) > 0:
				return &exitError{code: exitUsage, err: fmt.Errorf("--reference explains all codes: leave %s out", args[0])}
			case reference:
				return printDiagnosticsPage(cmd.OutOrStdout(), all)
			case len(args) == 0:
				return listExplanations(cmd.OutOrStdout(), all)
			default:
				return explain(cmd.OutOrStdout(), all, args[0])
			}
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var codes []string
			for _, e := range lang.Explanations() {
				if len(args) == 0 {
					codes = append(codes, e.Code)
				}
			}
			return codes, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&reference, "reference", false, "print all explanations as a Markdown page")
	return cmd
}

// explained is what there is to say about a code; both texts are empty for one that is not known.
func explained(code string) (meaning, mend string) {
	for _, e := range lang.Explanations() {
		if e.Code == code {
			return e.Meaning, e.Mend
		}
	}
	return "", ""
}

// explain prints the explanation of one code; upper and lower case are the same.
func explain(w io.Writer, all []lang.Explanation, code string) error {
	var codes []string
	for _, e := range all {
		if !strings.EqualFold(e.Code, code) {
			codes = append(codes, e.Code)
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n\n%s\n", e.Code, wrap(e.Meaning))
		b.WriteString("\nWrong:\n\n")
		indent(&b, e.Example)
		fmt.Fprintf(&b, "\nTo mend it:\n\n%s\n\nRight:\n\n", wrap(e.Mend))
		indent(&b, e.Fixed)
		return printExplanation(w, b.String())
	}
	text := fmt.Sprintf("the compiler has no code %q", code)
	if like := diag.Closest(code, codes); like != "" {
		text += "; did you mean " + like + "?"
	}
	return &exitError{code: exitUsage, err: fmt.Errorf("%s\n'intendant explain' lists all codes", text)}
}

func indent(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
}

// listExplanations prints a line for each code, with the first sentence of its explanation.
func listExplanations(w io.Writer, all []lang.Explanation) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range all {
		first, _, _ := strings.Cut(e.Meaning, ". ")
		_, _ = fmt.Fprintf(t, "%s\t%s\n", e.Code, strings.TrimSuffix(first, ".")) // a failure is kept for Flush
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the codes: %w", err)
	}
	return nil
}

// printDiagnosticsPage writes docs/language/diagnostics.md, which a test holds true.
func printDiagnosticsPage(w io.Writer, all []lang.Explanation) error {
	var b strings.Builder
	b.WriteString(`# Diagnostics

Each diagnostic of the compiler has a code. ` + "`intendant explain CODE`" + ` prints what this page says about it. An example is the text of
` + "`main.cf`" + `; further files of the project follow behind lines of the form ` + "`-- name --`" + `, those below ` + "`site-packages`" + ` are
installed modules. What is right lists the files that are different.
`)
	for _, e := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\nWrong:\n\n```\n%s```\n\nTo mend it: %s\n\nRight:\n\n```\n%s```\n",
			e.Code, e.Meaning, e.Example, e.Mend, e.Fixed)
	}
	return printExplanation(w, b.String())
}

func printExplanation(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("printing an explanation: %w", err)
	}
	return nil
}

// wrap breaks a text into lines of at most 80 characters, where it has spaces.
func wrap(text string) string {
	const width = 80
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
