package engine

import (
	"fmt"
	"slices"

	"github.com/intendant/intendant/model"
)

// absorb folds in a version (server reference, section 8.3). Its cost is that of what changed, and of what is dirty.
func (s *State) absorb(e VersionReleased) {
	if e.Version <= s.version {
		return
	}
	for _, id := range e.Removed {
		if i, ok := s.byID[id]; ok && s.res[i].managed {
			s.remove(i)
		}
	}
	changed := make([]int32, len(e.Changed))
	for k := range e.Changed {
		changed[k] = s.change(e.Changed[k])
	}
	for _, i := range changed {
		s.link(i)
	}
	for _, i := range changed {
		s.impede(i)
	}
	s.settleImpeded()
	for _, i := range changed {
		s.relieve(i)
		s.comply(i)
		s.touch(i)
		s.refresh(i)
		s.arm(i)
	}
	s.version, s.trace = e.Version, e.Trace
	s.out.processed = e.Version
	s.recall()
	s.requestDirty(s.newVersion())
}

// recall makes dirty again what waits for a person: a version is something that somebody did. What it mends, such as the code of a
// handler, need not show in the attributes.
func (s *State) recall() {
	for _, i := range s.persons {
		r := &s.res[i]
		r.listed = false
		if r.person {
			r.quiet, r.person = false, false
			s.refresh(i)
			s.arm(i)
		}
	}
	s.persons = s.persons[:0]
}

func (s *State) newVersion() ask {
	return ask{prio: NewVersion, kind: model.TaskDeploy, reason: fmt.Sprintf("version %d was released", s.version), trace: s.trace}
}

// change takes a new intent of a resource, new or known.
func (s *State) change(in model.Intent) int32 {
	i := s.slot(in.Resource)
	r := &s.res[i]
	if !r.managed {
		s.adopt(i, in)
		return i
	}
	updated := in.AttributeHash != r.intent.AttributeHash || in.Undefined != r.intent.Undefined
	s.setIntent(i, in)
	if updated {
		// Whatever was learned of the old intent does not hold for the new one.
		r.quiet, r.person = false, false
		r.retryAt = 0
		r.state.Failures = 0
		if r.state.Blocked == model.TemporarilyBlocked {
			r.state.Blocked = model.NotBlocked
		}
		return i
	}
	return i
}

// remove makes a resource an orphan. Nothing is undone in reality: that takes an intent that says so.
func (s *State) remove(i int32) {
	r := &s.res[i]
	s.drop(i)
	s.verified(i)
	for _, q := range slices.Clone(r.requires) {
		s.removeEdge(i, q)
	}
	r.intent.Undefined = false
	r.managed = false
	s.managed--
	s.impede(i)
	s.detach(i)
	r.life++
	r.hasAgain = false
	r.event, r.quiet, r.person, r.retryAt = false, false, false, 0
	r.state.OrphanedAfter = max(s.version, 1)
	s.resTimers.set(i, never)
	s.refresh(i)
	s.touch(i)
	s.gone = append(s.gone, i)
}

// detach takes a resource out of the requirements of all that name it. Those that still do in the new version do so in vain:
// its other intents decide.
func (s *State) detach(i int32) {
	dependants := s.res[i].provides
	s.res[i].provides = nil
	for _, d := range dependants {
		x := &s.res[d]
		k := slices.Index(x.requires, i)
		x.requires = slices.Delete(x.requires, k, k+1)
		if s.res[i].phase != idle && x.phase == waiting {
			s.unwait(d)
		}
		s.relieve(d)
	}
}

// relieve ends a temporary block whose cause is gone: no requirement is left whose last run was not compliant.
func (s *State) relieve(i int32) {
	r := &s.res[i]
	if r.state.Blocked == model.TemporarilyBlocked && !s.badRequirement(i) {
		r.state.Blocked = model.NotBlocked
		s.touch(i)
		s.refresh(i)
		s.arm(i)
	}
}
