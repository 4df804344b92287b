import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState, type FormEvent, type ReactElement } from 'react';

import { call, segment, type Envelope } from '../../api/client';
import type { EnvironmentSettings } from '../../api/types';
import { text } from '../../i18n/en';
import { Card, PageHead } from '../../ui/layout';
import { Loaded, Refusal } from '../../ui/query';

type Definition = EnvironmentSettings['definition'][string];

const settingKeys = { all: (environment: string) => ['settings', environment] as const };

function plain(v: unknown): string {
  return typeof v === 'string' ? v : JSON.stringify(v ?? '');
}

function Setting(props: { environment: string; d: Definition; value: unknown }): ReactElement {
  const { environment, d } = props;
  const client = useQueryClient();
  const isSet = props.value !== undefined;
  const value = isSet ? props.value : d.default;
  const [draft, setDraft] = useState(plain(value));
  const save = useMutation({
    mutationFn: (v: unknown) =>
      v === undefined
        ? call<undefined>('DELETE', `/api/v2/environment_settings/${segment(d.name)}`, { environment })
        : call<undefined>('POST', `/api/v2/environment_settings/${segment(d.name)}`, { environment, body: { value: v } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['settings'] }),
  });
  const submit = (e: FormEvent): void => {
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
          <input id={d.name} type="checkbox" checked={value === true} disabled={save.isPending} onChange={(e) => save.mutate(e.target.checked)} />
        ) : (
          <>
            <input id={d.name} style={{ width: 180 }} value={draft} onChange={(e) => setDraft(e.target.value)} />
            <button type="submit" disabled={save.isPending || draft === plain(value)}>
              {text.common.save}
            </button>
          </>
        )}
        {isSet ? (
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
          <span className="muted small">{text.settings.default}</span>
        )}
      </div>
      <p className="muted small">{d.doc}</p>
      <Refusal error={save.error} />
    </form>
  );
}

export function SettingsPage(): ReactElement {
  const { environment } = useParams({ from: '/environments/$environment' });
  const settings = useQuery({
    queryKey: settingKeys.all(environment),
    queryFn: async ({ signal }) => (await call<Envelope<EnvironmentSettings>>('GET', '/api/v2/environment_settings', { environment, signal })).data,
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
                <Card key={section} title={section} bare>
                  {definitions
                    .filter((d) => d.section === section)
                    .map((d) => (
                      <Setting key={d.name} environment={environment} d={d} value={s.settings[d.name]} />
                    ))}
                </Card>
              ))}
            </div>
          );
        }}
      </Loaded>
    </>
  );
}
