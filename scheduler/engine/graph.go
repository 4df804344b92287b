package engine

import (
	"slices"

	"github.com/intendant/intendant/model"
)

// link makes the edges of a resource those of its intent. Requirements that the version does not have are passed over.
func (s *State) link(i int32) {
	r := &s.res[i]
	if !r.managed {
		return
	}
	if len(r.requires) == len(r.intent.Requires) {
		same := true
		for k, id := range r.intent.Requires {
			if s.res[r.requires[k]].state.Resource != id {
				same = false
				break
			}
		}
		if same {
			return
		}
	}
	// Marks tell, without a search, which requirements are wanted (mark) and which of those are there already (mark+1).
	s.mark += 2
	mark := s.mark
	want := make([]int32, 0, len(r.intent.Requires))
	for _, id := range r.intent.Requires {
		if q, ok := s.byID[id]; ok && q != i && s.res[q].managed && s.res[q].mark != mark {
			s.res[q].mark = mark
			want = append(want, q)
		}
	}
	for _, q := range slices.Clone(r.requires) {
		if s.res[q].mark != mark {
			s.removeEdge(i, q)
		} else {
			s.res[q].mark = mark + 1
		}
	}
	for _, q := range want {
		if s.res[q].mark == mark {
			s.addEdge(i, q)
		}
	}
	// The order is the intent's, whatever it was before.
	s.res[i].requires = want
}

func (s *State) addEdge(i, q int32) {
	r, x := &s.res[i], &s.res[q]
	r.requires = append(r.requires, q)
	x.provides = append(x.provides, i)
	if x.impeded {
		r.blockers++
	}
	if x.phase == idle {
		return
	}
	switch r.phase {
	case queued:
		s.pushBack(i)
		r.wait++
		s.raiseRequirements(i)
	case waiting:
		r.wait++
		s.raiseRequirements(i)
	case idle, running:
	}
}

func (s *State) removeEdge(i, q int32) {
	r, x := &s.res[i], &s.res[q]
	r.requires = slices.Delete(r.requires, slices.Index(r.requires, q), slices.Index(r.requires, q)+1)
	k := slices.Index(x.provides, i)
	x.provides[k] = x.provides[len(x.provides)-1]
	x.provides = x.provides[:len(x.provides)-1]
	if x.impeded {
		r.blockers--
	}
	if x.phase != idle && r.phase == waiting {
		s.unwait(i)
	}
}

// impede recomputes whether a resource is impeded and carries a change on to everything that requires it. Each count is of
// edges, so whatever the order of the changes, in a graph without cycles the end is the definition: a resource is impeded
// when it, or something that it requires directly or not, is undefined. On the way there it may be so for a moment;
// settleImpeded draws the consequences once all changes are in.
func (s *State) impede(i int32) {
	s.stack = append(s.stack[:0], i)
	for len(s.stack) > 0 {
		i := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		r := &s.res[i]
		now := r.managed && (r.intent.Undefined || r.blockers > 0)
		if now == r.impeded {
			continue
		}
		r.impeded = now
		s.flipped = append(s.flipped, i)
		for _, d := range r.provides {
			if now {
				s.res[d].blockers++
			} else {
				s.res[d].blockers--
			}
			s.stack = append(s.stack, d)
		}
	}
}

// settleImpeded blocks and unblocks what impede has found: requests of what is blocked are dropped, and timers set of what no
// longer is.
func (s *State) settleImpeded() {
	for _, i := range s.flipped {
		r := &s.res[i]
		if !r.managed || r.impeded == (r.state.Blocked == model.IsBlocked) {
			continue
		}
		if r.impeded {
			r.state.Blocked = model.IsBlocked
			r.hasAgain, r.event, r.retryAt = false, false, 0
			s.drop(i)
			s.verified(i)
		} else {
			r.state.Blocked = model.NotBlocked
		}
		s.touch(i)
		s.refresh(i)
		s.arm(i)
	}
	s.flipped = s.flipped[:0]
}

// badRequirement tells whether the last run of some direct requirement was not compliant; a requirement that never ran does
// not count.
func (s *State) badRequirement(i int32) bool {
	for _, q := range s.res[i].requires {
		if st := &s.res[q].state; st.LastRun != model.RunNew && st.LastOutcome != model.OutcomeDeployed {
			return true
		}
	}
	return false
}
