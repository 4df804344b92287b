import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState, type ReactElement, type SyntheticEvent } from 'react';

import { call, segment, type Envelope } from '../../api/client';
import type { EnvironmentDetails, EnvironmentSettings } from '../../api/types';
import { text } from '../../i18n/en';
import { Card, Dialog, PageHead } from '../../ui/layout';
import { Loaded, Refusal } from '../../ui/query';
import { sentence } from '../../ui/value';

type Definition = EnvironmentSettings['definition'][string];

const settingKeys = { all: (environment: string) => ['settings', environment] as const };

function plain(v: unknown): string {
  return typeof v === 'string' ? v : JSON.stringify(v ?? '');
}

/** The values a setting may have, none when it is free. Servers say null for none. */
function choicesOf(d: { allowed_values: readonly string[] | null }): readonly string[] {
  return d.allowed_values ?? [];
}

function Setting(props: { environment: string; d: Definition; value: unknown }): ReactElement {
  const { environment, d } = props;
  const client = useQueryClient();
  const choices = choicesOf(d);
  const isSet = props.value !== undefined;
  const value = isSet ? props.value : d.default;
  const [draft, setDraft] = useState(plain(value));
  const save = useMutation({
    mutationFn: (v: unknown) =>
      v === undefined
        ? call<undefined>('DELETE', `/api/v2/environment_settings/${segment(d.name)}`, { environment })
        : call<undefined>('POST', `/api/v2/environment_settings/${segment(d.name)}`, {
            environment,
            body: { value: v },
          }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['settings'] }),
  });
  const submit = (e: SyntheticEvent<HTMLFormElement>): void => {
    e.preventDefault();
    save.mutate(d.type === 'int' || d.type === 'positive_float' ? Number(draft) : draft);
  };
  return (
    <form className="journey" onSubmit={submit}>
      <div className="row wrap">
        <label htmlFor={d.name} className="mono grow">
          {d.name}
        </label>
        {d.type === 'bool' ? (
          <input
            id={d.name}
            type="checkbox"
            checked={value === true}
            disabled={save.isPending || d.protected}
            onChange={(e) => save.mutate(e.target.checked)}
          />
        ) : choices.length > 0 ? (
          <select
            id={d.name}
            className="setting"
            value={plain(value)}
            disabled={save.isPending || d.protected}
            onChange={(e) => save.mutate(e.target.value)}
          >
            {choices.map((v) => (
              <option key={v}>{v}</option>
            ))}
          </select>
        ) : (
          <>
            <input
              id={d.name}
              className="setting"
              value={draft}
              disabled={d.protected}
              onChange={(e) => setDraft(e.target.value)}
            />
            <button type="submit" disabled={save.isPending || draft === plain(value)}>
              {text.common.save}
            </button>
          </>
        )}
        {isSet && !d.protected ? (
          <button
            type="button"
            className="quiet"
            onClick={() => {
              setDraft(plain(d.default));
              save.mutate(undefined);
            }}
          >
            {text.settings.reset}
          </button>
        ) : (
          <span className="muted small setting-note">
            {d.protected ? text.settings.protected : text.settings.default}
          </span>
        )}
      </div>
      <p className="muted small">{d.doc}</p>
      <Refusal error={save.error} />
    </form>
  );
}

/** Deletes the environment once its name was typed. */
function Danger({ environment }: { environment: string }): ReactElement {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [asking, setAsking] = useState(false);
  const [typed, setTyped] = useState('');
  const details = useQuery({
    queryKey: ['environments', environment],
    queryFn: async ({ signal }) =>
      (
        await call<Envelope<EnvironmentDetails>>('GET', `/api/v3/environment/${segment(environment)}`, {
          signal,
          query: { deploy_summary: true },
        })
      ).data,
  });
  const remove = useMutation({
    mutationFn: () => call<undefined>('DELETE', `/api/v2/environment/${segment(environment)}`),
    onSuccess: async () => {
      await navigate({ to: '/environments' });
      await client.invalidateQueries({ queryKey: ['environments'] });
    },
  });
  return (
    <Card title={text.settings.danger}>
      <div className="row wrap">
        <p className="muted grow">{text.settings.removeHint}</p>
        <button type="button" className="danger" onClick={() => setAsking(true)}>
          {text.settings.remove}
        </button>
      </div>
      {asking && (
        <Dialog title={text.settings.remove} onClose={() => setAsking(false)}>
          <p>{text.settings.removeHint}</p>
          <label className="field">
            {text.settings.removeConfirm}
            <input
              value={typed}
              placeholder={details.data?.name}
              autoComplete="off"
              onChange={(e) => setTyped(e.target.value)}
            />
          </label>
          <Refusal error={remove.error} />
          <div className="row">
            <button
              type="button"
              className="danger"
              disabled={remove.isPending || typed === '' || typed !== details.data?.name}
              onClick={() => remove.mutate()}
            >
              {text.settings.remove}
            </button>
            <button type="button" onClick={() => setAsking(false)}>
              {text.common.cancel}
            </button>
          </div>
        </Dialog>
      )}
    </Card>
  );
}

export function SettingsPage(): ReactElement {
  const { environment } = useParams({ from: '/environments/$environment' });
  const settings = useQuery({
    queryKey: settingKeys.all(environment),
    queryFn: async ({ signal }) =>
      (await call<Envelope<EnvironmentSettings>>('GET', '/api/v2/environment_settings', { environment, signal })).data,
  });
  return (
    <>
      <PageHead title={text.settings.title} sub={text.settings.sub} />
      <Loaded query={settings} lines={8}>
        {(s) => {
          const definitions = Object.values(s.definition);
          const sections = [...new Set(definitions.map((d) => d.section))];
          return (
            <div className="stack">
              {sections.map((section) => (
                <Card key={section} title={sentence(section)} bare>
                  {definitions
                    .filter((d) => d.section === section)
                    .map((d) => (
                      <Setting key={d.name} environment={environment} d={d} value={s.settings[d.name]} />
                    ))}
                </Card>
              ))}
              <Danger environment={environment} />
            </div>
          );
        }}
      </Loaded>
    </>
  );
}
