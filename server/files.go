package server

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

type fileIDArgs struct {
	ID string `arg:"id" doc:"The SHA-1 of the content, in hex."`
}

type fileUploadArgs struct {
	ID      string `arg:"id" doc:"The SHA-1 of the content, in hex."`
	Content string `arg:"content" doc:"The content in base64."`
}

type fileStatArgs struct {
	Files []string `arg:"files"`
}

type contentV1 struct {
	Content string `json:"content"`
}

type filesV1 struct {
	Files []string `json:"files"`
}

var sha1Hex = lazyregexp.New(`^[0-9a-f]{40}$`)

func (s *Server) fileUpload(ctx context.Context, _ *call, a fileUploadArgs) (none, error) {
	content, err := base64.StdEncoding.DecodeString(a.Content)
	if err != nil {
		return none{}, invalidArgument("content", "value_error", "the content is not base64: %v", err)
	}
	sum := sha1.Sum(content)
	if hash := hex.EncodeToString(sum[:]); hash != a.ID {
		return none{}, invalidArgument("id", "value_error", "The hash does not match the content: it is %s, not %s", hash, a.ID)
	}
	return none{}, s.store.SaveFile(ctx, model.File{Hash: a.ID, Content: content})
}

func (s *Server) fileStat(ctx context.Context, c *call, a fileIDArgs) (none, error) {
	missing, err := s.store.MissingFiles(ctx, []string{a.ID})
	if err == nil && len(missing) > 0 {
		c.status = http.StatusNotFound
	}
	return none{}, err
}

func (s *Server) fileGet(ctx context.Context, _ *call, a fileIDArgs) (contentV1, error) {
	if !sha1Hex().MatchString(a.ID) {
		return contentV1{}, fmt.Errorf("file %q: %w", a.ID, model.ErrNotFound)
	}
	content, err := s.store.File(ctx, a.ID)
	return contentV1{base64.StdEncoding.EncodeToString(content)}, err
}

func (s *Server) fileStats(ctx context.Context, _ *call, a fileStatArgs) (filesV1, error) {
	for _, hash := range a.Files {
		if !sha1Hex().MatchString(hash) {
			return filesV1{}, invalidArgument("files", "value_error", "%q is not a SHA-1 in hex", hash)
		}
	}
	missing, err := s.store.MissingFiles(ctx, a.Files)
	if missing == nil {
		missing = []string{}
	}
	return filesV1{missing}, err
}
