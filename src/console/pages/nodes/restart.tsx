/** Restarts a control-plane component of the node's host and shows the outcome. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { questionOf } from '../../data/api/access.ts';
import { NODES } from '../../data/api/resources.ts';
import { COMPONENT_LABELS, readRestarts, restartCommand, restartComponent } from '../../data/hosts/restart.ts';
import { api, clock } from '../../ui/context.ts';
import { usePoll } from '../../ui/hooks.ts';
import { Action, State } from '../../ui/parts.tsx';

const POLL_MS = 10_000;
const EFFECTS: Readonly<Record<string, string>> = {
  api: 'Requests to it fail for some seconds. This page reads the outcome when it answers again.',
  controllers: 'Another master takes over its controllers and its scheduler, or they pause until it is ready.',
  etcd: 'With a single member of the store, all requests fail until it is ready.',
};

export interface RestartProps {
  readonly name: string;
  /** Called with the equivalent command of the host, to show it. */
  readonly onCommand: (command: string) => void;
}

export function Restart({ name, onCommand }: RestartProps) {
  const [running, setRunning] = useState<{ readonly component: string; readonly text: string }>();
  const [outcome, setOutcome] = useState<{ readonly level: 'good' | 'bad'; readonly text: string }>();
  const [turn, setTurn] = useState(0);
  const ended = useRef<AbortController>(undefined);
  useEffect(() => () => ended.current?.abort(new Error('the page was closed')), []);
  const report = usePoll((signal) => readRestarts(api, name, signal), POLL_MS, `${name} ${turn}`);
  const question = questionOf('create', NODES, undefined, { name, subresource: 'proxy' });
  const run = async (component: string): Promise<void> => {
    const label = labelOf(component);
    const controller = new AbortController();
    ended.current = controller;
    onCommand(restartCommand(component));
    setOutcome(undefined);
    const onProgress = (text: string): void => setRunning({ component, text });
    try {
      await restartComponent(name, component, { api, clock, signal: controller.signal, onProgress });
      setOutcome({ level: 'good', text: `The restart of the ${label} is complete.` });
    } catch (error) {
      if (controller.signal.aborted) return;
      setOutcome({
        level: 'bad',
        text: `Restart of the ${label}: ${error instanceof Error ? error.message : String(error)}`,
      });
    } finally {
      setRunning(undefined);
      setTurn((last) => last + 1);
    }
  };
  const busy = running?.component ?? report?.current?.component;
  const last = report?.last;
  return (
    <section aria-label="Control plane">
      <h2>Control plane</h2>
      <div class="row">
        {(report?.components ?? Object.keys(COMPONENT_LABELS)).map((component) => (
          <Action
            key={component}
            label={`Restart ${labelOf(component)}`}
            question={question}
            confirm={`This restarts the ${labelOf(component)} of ${name}. ${EFFECTS[component] ?? ''} Pods keep running. On the host: ${restartCommand(component)}`}
            {...(busy === undefined ? {} : { disabled: `The restart of the ${labelOf(busy)} is in progress.` })}
            run={() => run(component)}
          />
        ))}
      </div>
      <p role="status">
        {running === undefined ? null : (
          <label>
            Restart of the {labelOf(running.component)}: {running.text} <progress />
          </label>
        )}
        {outcome === undefined ? null : <State {...outcome} />}
        {running === undefined && outcome === undefined && last?.endedAt !== undefined ? (
          <span class="muted">
            The last restart, of the {labelOf(last.component)}, ended at {last.endedAt}:{' '}
            {last.error ?? 'the component was ready'}
          </span>
        ) : null}
      </p>
    </section>
  );
}

const labelOf = (component: string): string => COMPONENT_LABELS[component] ?? component;
