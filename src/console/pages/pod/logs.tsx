import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { logsCommand } from '../../data/kubectl.ts';
import { containerNames } from '../../data/pods/debug.ts';
import type { LogRun } from '../../data/pods/failed-runs.ts';
import { followLog, LogBuffer, type LogLevel, type LogLine } from '../../data/pods/logs.ts';
import { FrameBatcher } from '../../data/watch/frames.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { api, clock, random } from '../../ui/context.ts';

const SHOWN_LINES = 1_000;
const LEVEL_CLASSES: Readonly<Record<LogLevel, string>> = {
  error: 'bad',
  warning: 'warn',
  info: '',
  debug: 'muted',
  none: '',
};

/** Live log with search, level colours and download. */
export function Logs({ pod, run }: { readonly pod: Pod; readonly run: LogRun | undefined }) {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  const containers = containerNames(pod);
  const [container, setContainer] = useState(run?.container ?? containers[0] ?? '');
  const [previous, setPrevious] = useState(run?.isPrevious ?? false);
  const [search, setSearch] = useState('');
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [status, setStatus] = useState('');
  const end = useRef<HTMLDivElement>(null);
  const [isFollowing, setFollowing] = useState(true);
  useCommand(logsCommand(namespace, name, container, !previous));
  useEffect(() => {
    const stop = new AbortController();
    const buffer = new LogBuffer();
    const frames = new FrameBatcher((run) => requestAnimationFrame(run));
    const show = (): void => {
      if (!stop.signal.aborted) setLines([...buffer.lines]);
    };
    setLines([]);
    setStatus('connecting');
    void followLog(
      { namespace, pod: name, container, previous },
      {
        api,
        clock,
        random,
        onLines: (each) => {
          buffer.push(each);
          frames.request(show);
        },
        onState: (state, error) => {
          if (!stop.signal.aborted) setStatus(error === undefined ? state : `${state}: ${error.message}`);
        },
      },
      stop.signal,
    );
    return () => stop.abort();
  }, [namespace, name, container, previous]);
  const found = useMemo(() => {
    const wanted = search.toLowerCase();
    return wanted === '' ? lines : lines.filter(({ text }) => text.toLowerCase().includes(wanted));
  }, [lines, search]);
  const shown = found.slice(-SHOWN_LINES);
  useEffect(() => {
    if (isFollowing && end.current !== null) end.current.scrollTop = end.current.scrollHeight;
  }, [shown.length, lines, isFollowing]);
  const download = (): void => {
    const blob = new Blob(
      lines.map(({ time, text }) => `${time} ${text}\n`),
      { type: 'text/plain' },
    );
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = `${namespace}-${name}-${container}.log`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <>
      <div class="row">
        <label>
          Container{' '}
          <select value={container} onChange={({ currentTarget }) => setContainer(currentTarget.value)}>
            {containers.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          <input type="checkbox" checked={previous} onChange={() => setPrevious(!previous)} /> previous run
        </label>
        <label>
          <input type="checkbox" checked={isFollowing} onChange={() => setFollowing(!isFollowing)} /> follow
        </label>
        <label>
          <span class="hidden">Search the log</span>
          <input
            type="search"
            placeholder="Search"
            value={search}
            onInput={({ currentTarget }) => setSearch(currentTarget.value)}
          />
        </label>
        <button type="button" onClick={download}>
          Download
        </button>
        <span class="muted">
          {found.length} lines, {status}
        </span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard */}
      <section class="log" aria-label="Log" ref={end} tabIndex={0}>
        {status === 'ended' && lines.length === 0 ? (
          <p class="muted">
            {previous
              ? 'The previous run wrote no lines, or there was none.'
              : 'The container has not written any lines. If it was restarted, choose "previous run".'}
          </p>
        ) : null}
        {shown.map(({ number, text, level, time }) => (
          <div key={number} class={LEVEL_CLASSES[level]} title={time}>
            {text}
          </div>
        ))}
      </section>
    </>
  );
}
