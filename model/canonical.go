package model

import (
	"bytes"
	"cmp"
	"crypto/md5" //nolint:gosec // the reference's change detection is defined with MD5; nothing is secured by it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
)

// Canonical re-encodes a JSON value in one defined form: no white space, object keys sorted by bytes, numbers and strings
// with their exact text as encoding/json writes them, no HTML escaping. Equal values give equal bytes.
func Canonical(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("decoding attributes: %w", err)
	}
	return CanonicalValue(v)
}

// CanonicalValue encodes a value made of maps, slices, strings, numbers, booleans and nil as [Canonical] does.
func CanonicalValue(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := writeCanonical(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeCanonical(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeScalar(b, k); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := writeCanonical(b, v[k]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case []any:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeCanonical(b, x); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case json.RawMessage:
		c, err := Canonical(v)
		if err != nil {
			return err
		}
		b.Write(c)
		return nil
	default:
		return writeScalar(b, v)
	}
}

func writeScalar(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encoding %T: %w", v, err)
	}
	b.Truncate(b.Len() - 1) // Encode ends with a newline
	return nil
}

// AttributeHash is the fingerprint of an intent: the MD5, in hex, of the resource id and its canonical attributes. As in
// the reference (server reference, section 1) dependencies take no part in it.
func AttributeHash(id ResourceID, canonical json.RawMessage) string {
	text := make([]byte, 0, 1<<10)
	sum := md5.Sum(append(append(text, id...), canonical...))
	return hex.EncodeToString(sum[:])
}

// BodyHash addresses a stored resource body: the SHA-256 of attributes, requires, set and definedness.
func BodyHash(i Intent) [sha256.Size]byte {
	text := append(make([]byte, 0, 1<<10), i.Attributes...)
	for _, r := range i.Requires {
		text = append(append(text, 0), r...)
	}
	text = append(append(text, 1), i.Set...)
	if i.Undefined {
		text = append(text, 2)
	}
	return sha256.Sum256(text)
}

// NewIntent makes an intent from any JSON object of attributes: it canonicalises, hashes and sorts.
func NewIntent(id ResourceID, attributes json.RawMessage, requires []ResourceID, set string, undefined bool) (Intent, error) {
	c, err := Canonical(attributes)
	if err != nil {
		return Intent{}, fmt.Errorf("resource %s: %w", id, err)
	}
	r := slices.Clone(requires)
	slices.Sort(r)
	r = slices.Compact(r)
	return Intent{Resource: id, Attributes: c, AttributeHash: AttributeHash(id, c), Requires: r, Set: set, Undefined: undefined}, nil
}

// StateDigest is the digest of a whole desired state: the SHA-256, in hex, over all intents ordered by resource id.
func StateDigest(intents []Intent) string {
	order := make([]int, len(intents))
	for i := range order {
		order[i] = i
	}
	compare := func(a, b int) int { return cmp.Compare(intents[a].Resource, intents[b].Resource) }
	if !slices.IsSortedFunc(order, compare) {
		slices.SortFunc(order, compare)
	}
	h := sha256.New()
	var text []byte
	for _, i := range order {
		b := BodyHash(intents[i])
		text = append(append(text[:0], intents[i].Resource...), b[:]...)
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))
}
