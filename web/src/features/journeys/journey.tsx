import { Link } from '@tanstack/react-router';
import type { ReactElement, ReactNode } from 'react';

import type { Journey } from '../../api/types';
import { text } from '../../i18n/en';
import { Commit } from '../../ui/commit';
import { Icon, type IconName } from '../../ui/icons';
import { Notice } from '../../ui/layout';
import { StatusChip, SummaryBar, type Tone } from '../../ui/status';
import { Took, When } from '../../ui/time';
import { sentence } from '../../ui/value';

type StepState = 'done' | 'busy' | 'bad' | 'todo';

const stepLooks: Record<StepState, { tone: Tone; icon: IconName }> = {
  done: { tone: 'ok', icon: 'check' },
  busy: { tone: 'busy', icon: 'busy' },
  bad: { tone: 'bad', icon: 'cross' },
  todo: { tone: 'idle', icon: 'circle' },
};

function Step(props: { state: StepState; title: string; children?: ReactNode }): ReactElement {
  const { tone, icon } = stepLooks[props.state];
  return (
    <li className={`step tone-${tone}`} data-done={props.state === 'done'}>
      <Icon name={icon} spin={props.state === 'busy'} />
      <b>{props.title}</b>
      <span className="muted small">{props.children}</span>
    </li>
  );
}

function compileState(j: Journey): StepState {
  switch (j.compile_status) {
    case 'succeeded':
      return 'done';
    case 'failed':
    case 'cancelled':
      return 'bad';
    case 'running':
      return 'busy';
    default:
      return 'todo';
  }
}

/** Nothing is left to do by itself: what is not deployed has failed or is blocked. */
function stuck(j: Journey): boolean {
  return j.phase === 'deploying' && j.waiting === 0 && j.failed + j.blocked > 0;
}

function deployState(j: Journey): StepState {
  if (j.phase === 'converged' || j.converged_at) return 'done';
  if (j.phase === 'deploying') return stuck(j) ? 'bad' : 'busy';
  return j.phase === 'superseded' && j.released_at ? 'done' : 'todo';
}

/** One commit on its way from push to reality. */
export function JourneyRow({ journey: j, environment }: { journey: Journey; environment: string }): ReactElement {
  const compile = compileState(j);
  const deploy = deployState(j);
  const params = { environment };
  return (
    <article className="journey" aria-label={j.revision?.message ?? j.reason}>
      <div className="row wrap">
        <Commit revision={j.revision} />
        <StatusChip status={stuck(j) ? 'failed' : j.phase} />
        <span className="muted small">
          <When at={j.received_at ?? j.requested_at} />
        </span>
      </div>
      <ol className="steps">
        <Step state="done" title={text.journey.pushed}>
          {sentence(j.reason)}
        </Step>
        <Step state={compile} title={text.journey.compiled}>
          <Link to="/environments/$environment/compiles/$id" params={{ ...params, id: j.compile_id }}>
            {j.started_at ? <Took from={j.started_at} to={j.finished_at} /> : text.journey.waiting}
          </Link>
        </Step>
        <Step
          state={j.version > 0 ? 'done' : 'todo'}
          title={j.version > 0 ? `${text.journey.version} ${j.version}` : text.journey.version}
        >
          {j.version > 0 ? (
            <Link to="/environments/$environment/versions/$version" params={{ ...params, version: String(j.version) }}>
              {j.released_at ? <When at={j.released_at} /> : text.journey.notReleased}
            </Link>
          ) : compile === 'bad' ? (
            text.journey.none
          ) : null}
        </Step>
        <Step
          state={deploy}
          title={j.total > 0 ? `${text.journey.deploying} ${j.deployed}/${j.total}` : text.journey.deploying}
        >
          {j.first_deploy_at ? (
            <Took from={j.first_deploy_at} to={deploy === 'busy' ? null : (j.converged_at ?? j.last_deploy_at)} />
          ) : null}
        </Step>
        <Step
          state={j.converged_at ? 'done' : j.phase === 'superseded' ? 'todo' : deploy === 'busy' ? 'busy' : 'todo'}
          title={text.journey.converged}
        >
          {j.converged_at ? (
            <>
              {text.journey.took} <Took from={j.received_at ?? j.requested_at} to={j.converged_at} />
            </>
          ) : j.phase === 'superseded' ? (
            text.journey.superseded
          ) : null}
        </Step>
      </ol>
      {j.phase === 'deploying' && j.total > 0 && (
        <SummaryBar
          total={j.total}
          byState={{ deployed: j.deployed, failed: j.failed, available: j.waiting, skipped_for_undefined: j.blocked }}
          legend={j.failed + j.blocked > 0}
        />
      )}
      {compile === 'bad' && (
        <Notice tone="bad">
          {j.error === '' ? text.journey.compileFailed : <span className="value">{j.error}</span>}{' '}
          <Link to="/environments/$environment/compiles/$id" params={{ ...params, id: j.compile_id }}>
            {text.journey.toReport}
          </Link>
        </Notice>
      )}
      {stuck(j) && (
        <Notice tone="bad">
          {text.journey.stuck}{' '}
          <Link to="/environments/$environment/resources" params={params} search={{ status: 'failed' }}>
            {text.journey.toFailed}
          </Link>
        </Notice>
      )}
    </article>
  );
}
