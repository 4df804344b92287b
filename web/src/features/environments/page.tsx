import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type ReactElement, type SyntheticEvent } from 'react';

import { call, type Envelope } from '../../api/client';
import type { EnvironmentDetails, Project } from '../../api/types';
import { text } from '../../i18n/en';
import { Commit } from '../../ui/commit';
import { Icon } from '../../ui/icons';
import { Card, Dialog, Empty, PageHead } from '../../ui/layout';
import { Loaded, Refusal } from '../../ui/query';
import { StatusChip, SummaryBar } from '../../ui/status';
import { When } from '../../ui/time';

const environmentKeys = { all: ['environments', 'all'] as const, projects: ['environments', 'projects'] as const };

function EnvironmentCard({ e }: { e: EnvironmentDetails }): ReactElement {
  return (
    <Link to="/environments/$environment" params={{ environment: e.id }} className="card">
      <div className="card-head">
        <h2 className="grow truncate">{e.name}</h2>
        {e.halted ? <StatusChip status="halted" /> : e.compiling ? <StatusChip status="compiling" /> : null}
      </div>
      <div className="card-body stack" style={{ gap: 12 }}>
        <div className="row muted small">
          <Icon name="git" />
          <span className="truncate">{e.repo_url === '' ? text.environments.noRepo : e.repo_url}</span>
        </div>
        {e.revision && e.revision.commit !== '' && <Commit revision={e.revision} />}
        {e.deploy_summary && e.released_version > 0 ? (
          <SummaryBar total={e.deploy_summary.total} byState={e.deploy_summary.by_state} />
        ) : (
          <span className="muted small">{text.environments.neverDeployed}</span>
        )}
        {e.released_version > 0 && (
          <div className="row muted small">
            {text.environments.version} {e.released_version}
            {e.revision?.committed_at ? (
              <>
                {' · '}
                <When at={e.revision.committed_at} />
              </>
            ) : null}
          </div>
        )}
      </div>
    </Link>
  );
}

function CreateDialog({ projects, onClose }: { projects: Project[]; onClose: () => void }): ReactElement {
  const client = useQueryClient();
  const [project, setProject] = useState(projects[0]?.id ?? '');
  const create = useMutation({
    mutationFn: async (form: FormData) => {
      const field = (name: string): string => {
        const value = form.get(name);
        return typeof value === 'string' ? value.trim() : '';
      };
      const body: Record<string, string> = { name: field('name') };
      if (project === '') body['project'] = field('project');
      else body['project_id'] = project;
      for (const [to, from] of [
        ['repo_url', 'repo'],
        ['repo_branch', 'branch'],
        ['repo_path', 'path'],
      ] as const) {
        if (field(from) !== '') body[to] = field(from);
      }
      return call<Envelope<EnvironmentDetails>>('POST', '/api/v3/environment', { body });
    },
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['environments'] });
      onClose();
    },
  });
  const submit = (e: SyntheticEvent<HTMLFormElement>): void => {
    e.preventDefault();
    create.mutate(new FormData(e.currentTarget));
  };
  return (
    <Dialog title={text.environments.create} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label className="field">
          {text.environments.project}
          <select value={project} onChange={(e) => setProject(e.target.value)}>
            {projects.map((p) => (
              <option key={p.id} value={p.id}>
                {p.name}
              </option>
            ))}
            <option value="">{text.environments.newProject}</option>
          </select>
        </label>
        {project === '' && (
          <label className="field">
            {text.environments.projectName}
            <input name="project" required autoComplete="off" />
          </label>
        )}
        <label className="field">
          {text.environments.name}
          <input name="name" required autoComplete="off" />
        </label>
        <label className="field">
          {text.environments.repo}
          <input name="repo" placeholder="https://git.example.com/team/infra.git" autoComplete="off" />
          <span className="hint muted small">{text.environments.repoHint}</span>
        </label>
        <label className="field">
          {text.environments.branch}
          <input name="branch" placeholder="main" autoComplete="off" />
          <span className="hint muted small">{text.environments.branchHint}</span>
        </label>
        <label className="field">
          {text.environments.path}
          <input name="path" autoComplete="off" />
        </label>
        <Refusal error={create.error} />
        <div className="row">
          <button type="submit" className="primary" disabled={create.isPending}>
            {text.common.create}
          </button>
          <button type="button" onClick={onClose}>
            {text.common.cancel}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function EnvironmentsPage(): ReactElement {
  const [creating, setCreating] = useState(false);
  const environments = useQuery({
    queryKey: environmentKeys.all,
    queryFn: async ({ signal }) =>
      (
        await call<Envelope<EnvironmentDetails[]>>('GET', '/api/v3/environment', {
          signal,
          query: { deploy_summary: true },
        })
      ).data,
    refetchInterval: 15_000,
  });
  const projects = useQuery({
    queryKey: environmentKeys.projects,
    queryFn: async ({ signal }) => (await call<Envelope<Project[]>>('GET', '/api/v2/project', { signal })).data,
  });
  return (
    <>
      <PageHead
        title={text.environments.title}
        sub={text.environments.sub}
        actions={
          <button
            type="button"
            className="primary"
            disabled={projects.data === undefined}
            onClick={() => setCreating(true)}
          >
            <Icon name="plus" /> {text.environments.create}
          </button>
        }
      />
      <Loaded query={environments}>
        {(all) =>
          all.length === 0 ? (
            <Card bare>
              <Empty icon="rocket" title={text.environments.empty}>
                {text.environments.emptyHint}
              </Empty>
            </Card>
          ) : (
            <div className="stack">
              {[...new Set(all.map((e) => e.project_name))].map((name) => (
                <section key={name} className="stack" style={{ gap: 10 }} aria-label={name}>
                  <h2 className="group">{name}</h2>
                  <div className="grid">
                    {all
                      .filter((e) => e.project_name === name)
                      .map((e) => (
                        <EnvironmentCard key={e.id} e={e} />
                      ))}
                  </div>
                </section>
              ))}
            </div>
          )
        }
      </Loaded>
      {creating && projects.data !== undefined && (
        <CreateDialog projects={projects.data} onClose={() => setCreating(false)} />
      )}
    </>
  );
}
