package lsp

import "encoding/json"

// The types of the protocol, as far as they are needed: names and meaning are those of its specification.

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type lspRange struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string   `json:"uri"`
	Range lspRange `json:"range"`
}

type textDocument struct {
	URI string `json:"uri"`
}

type positionParams struct {
	TextDocument textDocument `json:"textDocument"`
	Position     position     `json:"position"`
}

type documentParams struct {
	TextDocument textDocument `json:"textDocument"`
}

type workspaceFolder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

type initializeParams struct {
	ProcessID        *int              `json:"processId"`
	RootURI          *string           `json:"rootUri"`
	WorkspaceFolders []workspaceFolder `json:"workspaceFolders"`
	Capabilities     struct {
		General struct {
			PositionEncodings []string `json:"positionEncodings"`
		} `json:"general"`
		Workspace struct {
			DidChangeWatchedFiles struct {
				DynamicRegistration bool `json:"dynamicRegistration"`
			} `json:"didChangeWatchedFiles"`
		} `json:"workspace"`
		TextDocument struct {
			Completion struct {
				CompletionItem struct {
					SnippetSupport bool `json:"snippetSupport"`
				} `json:"completionItem"`
			} `json:"completion"`
			DocumentSymbol struct {
				Hierarchical bool `json:"hierarchicalDocumentSymbolSupport"`
			} `json:"documentSymbol"`
		} `json:"textDocument"`
	} `json:"capabilities"`
}

type didOpenParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
}

type contentChange struct {
	Range *lspRange `json:"range"`
	Text  string    `json:"text"`
}

type didChangeParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
	} `json:"textDocument"`
	ContentChanges []contentChange `json:"contentChanges"`
}

type foldersParams struct {
	Event struct {
		Added   []workspaceFolder `json:"added"`
		Removed []workspaceFolder `json:"removed"`
	} `json:"event"`
}

type cancelParams struct {
	ID json.RawMessage `json:"id"`
}

// The severities of diagnostics.
const (
	severityError       = 1
	severityWarning     = 2
	severityInformation = 3
)

// The tags of diagnostics.
const tagDeprecated = 2

type relatedInformation struct {
	Location location `json:"location"`
	Message  string   `json:"message"`
}

type diagnostic struct {
	Range    lspRange             `json:"range"`
	Severity int                  `json:"severity"`
	Code     string               `json:"code,omitempty"`
	Source   string               `json:"source"`
	Message  string               `json:"message"`
	Tags     []int                `json:"tags,omitempty"`
	Related  []relatedInformation `json:"relatedInformation,omitempty"`
	Data     *diagnosticData      `json:"data,omitempty"`
}

// diagnosticData is what a quick fix needs to know about a diagnostic.
type diagnosticData struct {
	Hint string `json:"hint,omitempty"`
}

type publishParams struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type markup struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

type hover struct {
	Contents markup    `json:"contents"`
	Range    *lspRange `json:"range,omitempty"`
}

type textEdit struct {
	Range   lspRange `json:"range"`
	NewText string   `json:"newText"`
}

type workspaceEdit struct {
	Changes map[string][]textEdit `json:"changes"`
}

// The kinds of completion items.
const (
	itemFunction  = 3
	itemField     = 5
	itemVariable  = 6
	itemClass     = 7
	itemModule    = 9
	itemProperty  = 10
	itemKeyword   = 14
	itemReference = 18
	itemType      = 25
	itemMethod    = 2
)

type completionItem struct {
	Label            string     `json:"label"`
	Kind             int        `json:"kind,omitempty"`
	Detail           string     `json:"detail,omitempty"`
	Documentation    *markup    `json:"documentation,omitempty"`
	SortText         string     `json:"sortText,omitempty"`
	FilterText       string     `json:"filterText,omitempty"`
	InsertTextFormat int        `json:"insertTextFormat,omitempty"`
	TextEdit         *textEdit  `json:"textEdit,omitempty"`
	Additional       []textEdit `json:"additionalTextEdits,omitempty"`
	Tags             []int      `json:"tags,omitempty"`
}

type completionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []completionItem `json:"items"`
}

type parameterInformation struct {
	Label         [2]int  `json:"label"`
	Documentation *markup `json:"documentation,omitempty"`
}

type signatureInformation struct {
	Label         string                 `json:"label"`
	Documentation *markup                `json:"documentation,omitempty"`
	Parameters    []parameterInformation `json:"parameters"`
}

type signatureHelp struct {
	Signatures      []signatureInformation `json:"signatures"`
	ActiveSignature int                    `json:"activeSignature"`
	ActiveParameter *int                   `json:"activeParameter,omitempty"`
}

// The kinds of symbols.
const (
	symbolModule    = 2
	symbolNamespace = 3
	symbolClass     = 5
	symbolProperty  = 7
	symbolField     = 8
	symbolFunction  = 12
	symbolVariable  = 13
	symbolStruct    = 23
)

type documentSymbol struct {
	Name           string           `json:"name"`
	Detail         string           `json:"detail,omitempty"`
	Kind           int              `json:"kind"`
	Range          lspRange         `json:"range"`
	SelectionRange lspRange         `json:"selectionRange"`
	Children       []documentSymbol `json:"children,omitempty"`
}

type symbolInformation struct {
	Name          string   `json:"name"`
	Kind          int      `json:"kind"`
	Location      location `json:"location"`
	ContainerName string   `json:"containerName,omitempty"`
}

type foldingRange struct {
	StartLine int    `json:"startLine"`
	EndLine   int    `json:"endLine"`
	Kind      string `json:"kind,omitempty"`
}

type documentHighlight struct {
	Range lspRange `json:"range"`
	Kind  int      `json:"kind"` // 2 read, 3 write
}

type codeAction struct {
	Title       string         `json:"title"`
	Kind        string         `json:"kind"`
	Diagnostics []diagnostic   `json:"diagnostics,omitempty"`
	IsPreferred bool           `json:"isPreferred,omitempty"`
	Edit        *workspaceEdit `json:"edit,omitempty"`
}

type codeActionParams struct {
	TextDocument textDocument `json:"textDocument"`
	Range        lspRange     `json:"range"`
	Context      struct {
		Diagnostics []diagnostic `json:"diagnostics"`
		Only        []string     `json:"only"`
	} `json:"context"`
}

type prepareRenameResult struct {
	Range       lspRange `json:"range"`
	Placeholder string   `json:"placeholder"`
}
