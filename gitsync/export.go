package gitsync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/intendant/intendant/model"
)

// Refs asks a repository for its branches and tags and fetches nothing. The result maps full names to the commits that they lead
// to; head is the name of the default branch, empty when there is none. It fails as [Service.Resolve] does, and with
// [model.ErrNotFound] as well when there is no such repository for these credentials, and not when they are refused.
func (s *Service) Refs(ctx context.Context, repo model.Repository) (head string, refs map[string]string, err error) {
	r, err := parseURL(repo.URL)
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if p := recover(); p != nil { // go-git reads what strangers wrote
			err = fmt.Errorf("reading what the remote of repository %s sent: internal fault: %v: %w", repo.Name, p, model.ErrUnavailable)
		}
		if err != nil {
			// Forges say of a repository that one may not see that it is not there, or ask who is asking. Refused credentials
			// are another matter: whoever gave them expects the repository to be there.
			known := r.password != "" || repo.Password != "" || r.scheme == schemeSSH
			unseen := errors.Is(err, transport.ErrRepositoryNotFound) || errors.Is(err, transport.ErrAuthenticationRequired) && !known
			if err = s.explain(err, r, repo); unseen {
				err = fmt.Errorf("%w: %w", err, model.ErrNotFound)
			}
		}
	}()
	if err := acquire(ctx, s.peeks); err != nil {
		return "", nil, err
	}
	defer release(s.peeks)
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.PeekTimeout, fmt.Errorf("no answer within %s", s.config.PeekTimeout))
	defer cancel()
	c, err := s.transports.open(ctx, r, repo)
	if err != nil {
		return "", nil, err
	}
	defer c.close()
	ar, err := c.refs(ctx)
	if err != nil {
		return "", nil, err
	}
	refs = make(map[string]string, len(ar.References))
	for _, name := range slices.Sorted(maps.Keys(ar.References)) {
		if CheckBranch(name) != nil {
			continue // git itself could not have made it
		}
		hash := ar.References[name]
		if peeled, ok := ar.Peeled[name]; ok {
			hash = peeled
		}
		refs[name] = hash.String()
	}
	head, _ = resolveRef(ar, "")
	return head, refs, nil
}

// Export writes the tree of a commit into an empty directory, read-only, and fetches what the ref leads to unless the commit is
// at hand. The ref is a full name. It fails with a [HostileTreeError] when the commit contains something that is refused, with
// [model.ErrNotFound] when the repository does not have the commit below that ref (any more).
func (s *Service) Export(ctx context.Context, repo model.Repository, ref, commit, dir string) error {
	if !commitForm().MatchString(commit) {
		return fmt.Errorf("commit %.80q is not a full object id: %w", commit, model.ErrInvalid)
	}
	r, err := parseURL(repo.URL)
	if err != nil {
		return err
	}
	if err := errors.Join(CheckRepositoryName(repo.Name), CheckBranch(ref)); err != nil {
		return err
	}
	m, err := s.mirror(repo.Name, r)
	if err != nil {
		return err
	}
	if !m.has(plumbing.NewHash(commit)) && r.scheme == schemeFile && !s.transports.local {
		return fmt.Errorf("repository %s: local repositories are not allowed by the configuration: %w", r, model.ErrForbidden)
	}
	p, err := s.unpack(ctx, repo, r, model.Environment{RepoBranch: ref}, model.Revision{Commit: commit, Ref: ref}, dir)
	if err != nil {
		return err
	}
	if len(p.paths) == 0 {
		return fmt.Errorf("commit %s of %s is empty: %w", commit, r, model.ErrInvalid)
	}
	if err := os.Chmod(dir, 0o555); err != nil { //nolint:gosec // it must be readable by the compiler, whatever its user
		return fmt.Errorf("unpacking: %w", err)
	}
	return nil
}
