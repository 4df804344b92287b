package syntax_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"math/big"
	"testing"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// BenchmarkDecode reads a parsed file back from a general encoding, which is what a cache of parsed files on disk would do instead
// of parsing: ADR 0014 rests on it. The throughput counts the source, as that of BenchmarkParse does. BenchmarkDigest is the part
// that finding an entry takes.
func BenchmarkDecode(b *testing.B) {
	for _, node := range []any{
		&syntax.Import{}, &syntax.Entity{}, &syntax.Implementation{}, &syntax.Implement{}, &syntax.Relation{}, &syntax.Typedef{},
		&syntax.Index{}, &syntax.Assign{}, &syntax.For{}, &syntax.If{}, &syntax.ExprStmt{}, &syntax.Literal{}, &syntax.Regex{},
		&syntax.Interpolation{}, &syntax.FString{}, &syntax.VarRef{}, &syntax.AttrRef{}, &syntax.List{}, &syntax.ListComp{},
		&syntax.Dict{}, &syntax.Call{}, &syntax.Construct{}, &syntax.MapLookup{}, &syntax.IndexLookup{}, &syntax.ShortLookup{},
		&syntax.Not{}, &syntax.Binary{}, &syntax.Cond{}, &syntax.IsDefined{}, value.String(""), value.Int(0), value.Float(0),
		value.Bool(false), &big.Int{},
	} {
		gob.Register(node)
	}
	src := sample(2000)
	tree, _ := syntax.Parse("main.cf", src, syntax.Options{})
	var encoded bytes.Buffer
	if err := gob.NewEncoder(&encoded).Encode(tree); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	b.ReportMetric(float64(encoded.Len())/float64(len(src)), "encoded/source")
	for b.Loop() {
		var back syntax.File
		if err := gob.NewDecoder(bytes.NewReader(encoded.Bytes())).Decode(&back); err != nil {
			b.Fatal(err)
		}
		if len(back.Stmts) != len(tree.Stmts) {
			b.Fatal("statements are missing")
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	src := sample(2000)
	b.SetBytes(int64(len(src)))
	var sum byte
	for b.Loop() {
		digest := sha256.Sum256(src)
		sum += digest[0]
	}
}
