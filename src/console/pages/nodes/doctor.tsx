/** Checks of the node's host: a button, progress, and the problems with evidence and fix. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { questionOf } from '../../data/api/access.ts';
import { NODES } from '../../data/api/resources.ts';
import { countsText, type HostCheck, type HostReport, problemsOf, runHostChecks } from '../../data/hosts/doctor.ts';
import { sanitizeText } from '../../data/plain-text.ts';
import { showFailure, showToast } from '../../shell/toasts.tsx';
import { api } from '../../ui/context.ts';
import { Action, type Level, State } from '../../ui/parts.tsx';

const LEVELS: Readonly<Record<string, Level>> = { error: 'bad', warning: 'warn', unknown: 'warn' };

export function Doctor({ name }: { readonly name: string }) {
  const [report, setReport] = useState<HostReport>();
  const [isRunning, setRunning] = useState(false);
  const ended = useRef<AbortController>(undefined);
  useEffect(() => () => ended.current?.abort(), []);
  const run = async (): Promise<void> => {
    const controller = new AbortController();
    ended.current = controller;
    setRunning(true);
    try {
      setReport(await runHostChecks(api, name, controller.signal));
    } catch (error) {
      if (!controller.signal.aborted) throw error;
    } finally {
      setRunning(false);
    }
  };
  return (
    <section aria-label="Doctor">
      <h2>Doctor</h2>
      <div class="row">
        <Action
          label="Run doctor"
          question={questionOf('create', NODES, undefined, { name, subresource: 'proxy' })}
          run={run}
          {...(isRunning ? { disabled: 'The checks are in progress.' } : {})}
        />
        <span aria-live="polite">
          {isRunning ? (
            <label>
              The host is checked, for at most 60 s <progress />
            </label>
          ) : report === undefined ? (
            <span class="muted">Checks of the host with evidence and fixes, as by hyperedge doctor.</span>
          ) : (
            `${countsText(report.counts)} at ${report.time}`
          )}
        </span>
      </div>
      {report === undefined ? null : <Report report={report} />}
    </section>
  );
}

function Report({ report }: { readonly report: HostReport }) {
  return (
    <>
      {problemsOf(report).map(({ name, checks, fine }) => (
        <div key={name}>
          <h3>
            {name} <span class="muted">({fine} fine)</span>
          </h3>
          {checks.map((check) => (
            <Problem key={check.id} check={check} />
          ))}
        </div>
      ))}
    </>
  );
}

function Problem({ check: { id, title, result, findings } }: { readonly check: HostCheck }) {
  const copy = (fix: string): void =>
    void navigator.clipboard.writeText(fix).then(() => showToast('The fix was copied.'), showFailure);
  return (
    <div class={`card finding ${result === 'error' ? 'error' : 'warning'}`}>
      <p>
        <State level={LEVELS[result] ?? 'muted'} text={result} /> <strong>{id}</strong>, required: {title}
      </p>
      {findings.map(({ evidence, fix }) => (
        <div key={`${evidence} ${fix}`}>
          <p class="wrap">{sanitizeText(evidence)}</p>
          {fix === undefined ? null : (
            <p class="wrap">
              Fix: <code>{sanitizeText(fix)}</code>{' '}
              <button type="button" onClick={() => copy(sanitizeText(fix))}>
                Copy<span class="hidden"> the fix of {id}</span>
              </button>
            </p>
          )}
        </div>
      ))}
    </div>
  );
}
