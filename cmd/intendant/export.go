package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/model"
)

// newExportCommand compiles here and uploads the result as a version.
func newExportCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	f := &compileFlags{format: "text", g: g}
	var deploy bool
	var jsonFile, metadata string
	var partial partialFlags
	cmd := &cobra.Command{
		Use:   "export [DIR]",
		Short: "Compile a project here and upload the result to a server as a version",
		Long: `Compile the project in DIR (default: the current directory) and upload its resources and files. The environment is that of
-e, or of .inmanta or .intendant in the working directory, as environment save writes it. Nothing is uploaded when the model has faults.
With -d the version is released even if the environment does not release versions by itself. With -j the resources are
written to a file and nothing is uploaded.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if err := partial.check(); err != nil {
				return err
			}
			if jsonFile != "" {
				res, err := f.compile(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr(), lang.Inputs{})
				if err != nil {
					return err
				}
				return writeResources(jsonFile, res.State)
			}
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			inputs, err := s.compileInputs(cmd.Context())
			if err != nil {
				return err
			}
			res, err := f.compile(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr(), inputs)
			if err != nil {
				return err
			}
			number, err := s.upload(cmd.Context(), res.State, metadata, partial)
			if err != nil {
				return err
			}
			if err := s.say("Committed resources with version %d", number); err != nil {
				return err
			}
			if !deploy {
				return nil
			}
			return s.ensureReleased(cmd.Context(), number)
		},
	}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)
	f.pythonFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.main, "file", "f", "main.cf", "the main file")
	cmd.Flags().BoolVarP(&deploy, "deploy", "d", false, "release the version")
	cmd.Flags().StringVarP(&jsonFile, "json", "j", "", "write the resources to this file instead of uploading them")
	partial.flags(cmd.Flags())
	cmd.Flags().StringVar(&metadata, "metadata", "", "message to show with the version, or a JSON object")
	return cmd
}

// removedSetsVariable names resource sets to remove, separated by blanks, besides those of --delete-resource-set.
const removedSetsVariable = "INMANTA_REMOVED_RESOURCE_SET_ID"

// partialFlags are the flags of a partial export.
type partialFlags struct {
	on         bool
	remove     []string
	soft       bool
	codeUpdate bool
}

func (f *partialFlags) flags(fl *pflag.FlagSet) {
	fl.BoolVar(&f.on, "partial", false, "export the resource sets of the model and leave all others of the newest version as they are")
	fl.StringSliceVar(&f.remove, "delete-resource-set", nil, "with --partial: remove this resource set; may be given several times")
	fl.BoolVar(&f.soft, "soft-delete", false, "with --partial: keep a set that is to be removed if the model has resources in it")
	fl.BoolVar(&f.codeUpdate, "allow-handler-code-update", false, "with --partial: let the Python code of modules differ from that of the newest version")
}

// check refuses flags that mean nothing without --partial.
func (f *partialFlags) check() error {
	given := append(slices.Clone(f.remove), strings.Fields(os.Getenv(removedSetsVariable))...)
	switch {
	case f.on:
		f.remove = given
		return nil
	case len(given) > 0:
		return &exitError{code: exitUsage, err: fmt.Errorf("resource sets are removed by a partial export: add --partial, or leave out --delete-resource-set and %s", removedSetsVariable)}
	case f.soft || f.codeUpdate:
		return &exitError{code: exitUsage, err: errors.New("--soft-delete and --allow-handler-code-update belong to a partial export: add --partial")}
	}
	return nil
}

// version makes the partial version: sets that the model names and puts nothing into are removed, too.
func (f *partialFlags) version(v api.UploadedVersion, state model.DesiredState) api.PartialVersion {
	filled := map[string]bool{}
	for _, in := range state.Intents {
		filled[in.Set] = true
	}
	var removed []string
	for _, set := range f.remove {
		if !f.soft || !filled[set] {
			removed = append(removed, set)
		}
	}
	for _, set := range state.ResourceSets {
		if !filled[set] {
			removed = append(removed, set)
		}
	}
	slices.Sort(removed)
	// The packages that agents need are those of the version that the sets are merged into.
	v.PipConfig, v.ProjectConstraints = nil, nil
	return api.PartialVersion{UploadedVersion: v, RemovedResourceSets: slices.Compact(removed), AllowHandlerCodeUpdate: f.codeUpdate}
}

// compile runs the compiler in this process and fails, with the diagnostics written, when the model has faults.
func (f *compileFlags) compile(ctx context.Context, dir string, stdout, stderr io.Writer, inputs lang.Inputs) (*lang.Result, error) {
	out := bufio.NewWriter(stdout)
	defer func() { _ = out.Flush() }() // what was printed before a fault of ours
	inputs.Env = os.LookupEnv
	var made *lang.Result
	err := f.project(ctx, dir, lang.Options{Inputs: inputs, Stdout: out}, func(res *lang.Result, ds diag.List) error {
		made = res
		return errors.Join(out.Flush(), f.report(stderr, res, ds), f.summary(stderr, res, ds))
	})
	return made, err
}

// compileInputs reads facts and parameters of the environment from the server.
func (s *session) compileInputs(ctx context.Context) (lang.Inputs, error) {
	in := lang.Inputs{Facts: map[string]string{}, Parameters: map[string]string{}}
	e, err := s.EnvironmentDetails(ctx, s.Client.Environment())
	if err != nil {
		return in, err
	}
	in.Environment.ID, in.Environment.Name = e.ID, e.Name
	in.Seed = e.ID
	params, err := s.Parameters(ctx, api.ListOptions{})
	if err != nil {
		return in, err
	}
	for _, p := range params {
		in.Parameters[p.Name] = p.Value
	}
	facts, err := s.Facts(ctx, api.ListOptions{})
	if err != nil {
		return in, err
	}
	for _, f := range facts {
		in.Facts[f.ResourceID+"/"+f.Name] = f.Value
	}
	return in, nil
}

// upload stores a desired state under a new version and returns its number.
func (s *session) upload(ctx context.Context, state model.DesiredState, metadata string, partial partialFlags) (int, error) {
	files := make(map[string][]byte, len(state.Files))
	for _, f := range state.Files {
		files[f.Hash] = f.Content
	}
	if _, err := s.UploadFiles(ctx, files); err != nil {
		return 0, fmt.Errorf("uploading files: %w", err)
	}
	number := 0
	if !partial.on {
		var err error
		if number, err = s.ReserveVersion(ctx); err != nil {
			return 0, fmt.Errorf("reserving a version: %w", err)
		}
	}
	v := api.UploadedVersion{Version: number, ResourceState: map[string]string{}, ResourceSets: map[string]*string{}}
	for _, in := range state.Intents {
		body, err := uploadedResource(in, number)
		if err != nil {
			return 0, err
		}
		v.Resources = append(v.Resources, body)
		v.ResourceState[string(in.Resource)] = "available"
		if in.Undefined {
			v.ResourceState[string(in.Resource)] = "undefined"
		}
		if in.Set != "" {
			v.ResourceSets[string(in.Resource)] = &in.Set
		}
	}
	for _, u := range state.Unknowns {
		text, err := json.Marshal(map[string]string{"resource": u.Resource, "parameter": u.Name, "source": u.Source})
		if err != nil {
			return 0, fmt.Errorf("encoding an unknown: %w", err)
		}
		var one map[string]json.RawMessage
		if err := json.Unmarshal(text, &one); err != nil {
			return 0, fmt.Errorf("encoding an unknown: %w", err)
		}
		v.Unknowns = append(v.Unknowns, one)
	}
	if err := uploadedCode(&v, state); err != nil {
		return 0, err
	}
	info, err := versionInfo(metadata)
	if err != nil {
		return 0, err
	}
	v.VersionInfo = info
	if partial.on {
		if number, err = s.UploadPartial(ctx, partial.version(v, state)); err != nil {
			return 0, fmt.Errorf("storing a partial version: %w", err)
		}
		return number, nil
	}
	if err := s.UploadVersion(ctx, v); err != nil {
		return 0, fmt.Errorf("storing version %d: %w", number, err)
	}
	return number, nil
}

// uploadedCode adds the Python code that agents need, whose contents are among the files.
func uploadedCode(v *api.UploadedVersion, state model.DesiredState) error {
	if len(state.Code) > 0 {
		v.ModuleVersionInfo = map[string]json.RawMessage{}
	}
	for _, m := range state.Code {
		info := api.ModuleVersion{Name: m.Module, Version: m.Digest, Requirements: m.Requirements, ForAgents: []string{}, Types: m.Types}
		for _, f := range m.Files {
			info.Files = append(info.Files, api.ModuleFile{Name: f.Name, Hash: f.Hash, IsPackage: f.Package})
		}
		text, err := json.Marshal(info)
		if err != nil {
			return fmt.Errorf("encoding the code of module %s: %w", m.Module, err)
		}
		v.ModuleVersionInfo[m.Module] = text
	}
	if p := state.Pip; p != nil {
		v.PipConfig = &api.PipConfig{
			IndexURL: p.IndexURL, ExtraIndexURL: p.ExtraIndexURL, FindLinks: p.FindLinks, Pre: p.Pre, UseSystemConfig: p.UseSystemConfig,
		}
		if len(p.Constraints) > 0 {
			constraints := strings.Join(p.Constraints, "\n")
			v.ProjectConstraints = &constraints
		}
	}
	return nil
}

// uploadedResource is a resource as the API takes it: its fields with id and requires among them.
func uploadedResource(in model.Intent, version int) (map[string]json.RawMessage, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(in.Attributes, &body); err != nil {
		return nil, fmt.Errorf("resource %s: %w", in.Resource, err)
	}
	requires := in.Requires
	if requires == nil {
		requires = []model.ResourceID{}
	}
	for name, value := range map[string]any{"id": in.Resource.WithVersion(version), "requires": requires} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", in.Resource, err)
		}
		body[name] = text
	}
	return body, nil
}

// versionInfo is what is shown with a version: who exported it, and why.
func versionInfo(metadata string) (map[string]json.RawMessage, error) {
	meta := map[string]any{"type": "manual", "message": "Exported on the command line", "hostname": hostname(), "cli-user": os.Getenv("USER"), "inmanta:compile:state": "success"}
	if metadata != "" {
		var given map[string]any
		if json.Unmarshal([]byte(metadata), &given) == nil {
			maps.Copy(meta, given)
		} else {
			meta["message"] = metadata
		}
	}
	text, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("encoding the metadata: %w", err)
	}
	return map[string]json.RawMessage{"export_metadata": text}, nil
}

// ensureReleased releases a version unless the environment has done so by itself.
func (s *session) ensureReleased(ctx context.Context, number int) error {
	v, err := s.Version(ctx, number)
	if err != nil || v.Released {
		return err
	}
	if err := s.ReleaseVersion(ctx, number); err != nil && !api.IsConflict(err) {
		return fmt.Errorf("releasing version %d: %w", number, err)
	}
	return nil
}

// writeResources writes resources as the reference's JSON export does.
func writeResources(path string, state model.DesiredState) error {
	list := make([]map[string]json.RawMessage, 0, len(state.Intents))
	for _, in := range state.Intents {
		body, err := uploadedResource(in, 0)
		if err != nil {
			return err
		}
		list = append(list, body)
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the resources: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // an export is no secret
		return fmt.Errorf("writing the resources: %w", err)
	}
	return nil
}
