package storetest_test

import (
	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/compilerd"
	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/scheduler"
	"github.com/intendant/intendant/server"
	"github.com/intendant/intendant/store"
)

// The store satisfies the ports of the services without knowing them.
var (
	_ compilerd.Queue   = (*store.Store)(nil)
	_ gitsync.Recorder  = (*store.Store)(nil)
	_ hub.Registry      = (*store.Store)(nil)
	_ scheduler.Store   = (*store.Store)(nil)
	_ hub.SessionLister = (*store.Store)(nil)
	_ server.Store      = (*store.Store)(nil)
)
