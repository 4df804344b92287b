package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// writeFiles stores the contents of a state and checks that those it only names are stored already.
func (tx *Tx) writeFiles(ctx context.Context, files []model.File) error {
	const empty = "da39a3ee5e6b4b0d3255bfef95601890afd80709" // the SHA-1 of nothing
	var (
		given, named []string
		contents     [][]byte
	)
	for _, f := range files {
		switch {
		case f.Content != nil:
			given, contents = append(given, f.Hash), append(contents, f.Content)
		case f.Hash == empty:
			given, contents = append(given, f.Hash), append(contents, []byte{})
		default:
			named = append(named, f.Hash)
		}
	}
	if len(given) > 0 {
		if err := tx.InsertFiles(ctx, given, contents); err != nil {
			return err
		}
	}
	missing, err := missingFiles(ctx, tx.Queries, named)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("files are neither stored nor given; upload them first: %s: %w", strings.Join(missing, ", "), model.ErrInvalid)
	}
	return nil
}

// MissingFiles returns those of the hashes that are not stored, in the order given.
func (s *Store) MissingFiles(ctx context.Context, hashes []string) ([]string, error) {
	return missingFiles(ctx, s.read(), hashes)
}

func missingFiles(ctx context.Context, q *sqlgen.Queries, hashes []string) ([]string, error) {
	missing := []string{}
	if len(hashes) == 0 {
		return missing, nil
	}
	stored, err := q.StoredFiles(ctx, hashes)
	if err != nil {
		return nil, classify(err)
	}
	have := make(map[string]struct{}, len(stored))
	for _, h := range stored {
		have[h] = struct{}{}
	}
	for _, h := range hashes {
		if _, ok := have[h]; !ok {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// SaveFile stores a content whose hash was verified; storing it again changes nothing.
func (s *Store) SaveFile(ctx context.Context, f model.File) error {
	content := f.Content
	if content == nil {
		content = []byte{}
	}
	return s.InTx(ctx, func(tx *Tx) error { return tx.InsertFile(ctx, f.Hash, content) })
}

// File returns a content of the file storage by its SHA-1 in hex, or [model.ErrNotFound].
func (s *Store) File(ctx context.Context, hash string) ([]byte, error) {
	content, err := s.read().GetFile(ctx, hash)
	if err != nil {
		return nil, notFound(err, "file %s", hash)
	}
	return content, nil
}
