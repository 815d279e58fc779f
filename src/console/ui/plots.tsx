/** Plots of the usage history, each with the same facts as text. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { messageOf } from '../../base/errors.ts';
import { type History, type PlotSpec, SPANS, type Span, summaryOf, valueText } from '../data/hosts/history.ts';
import { theme } from '../shell/theme.ts';
import { showFailure } from '../shell/toasts.tsx';
import type { OpenPlot, PlotOptions } from '../widgets/plot.ts';

/** Refresh intervals: a minute for an hour of history; longer histories change slowly. */
const REFRESH_MS: Readonly<Record<Span, number>> = { '1h': 60_000, '24h': 300_000, '7d': 900_000 };

export interface PlotsProps {
  readonly label: string;
  readonly plots: readonly PlotSpec[];
  /** Reads the history. Resolves with undefined if there are no samples. */
  readonly read: (since: Span, signal: AbortSignal) => Promise<History | undefined>;
  /** Key of the data that `read` returns. The plots are read again when it changes. */
  readonly of: string;
  /** Value by metric that is drawn as a horizontal line, such as the capacity. */
  readonly limits?: Readonly<Record<string, number>>;
}

export function Plots({ label, plots, read, of, limits = {} }: PlotsProps) {
  const [since, setSince] = useState<Span>('1h');
  const { history, problem } = useHistory(read, since, of);
  return (
    <section aria-label={label}>
      <div class="row">
        <h2>{label}</h2>
        {SPANS.map((each) => (
          <button key={each} type="button" aria-pressed={since === each} onClick={() => setSince(each)}>
            {each}
          </button>
        ))}
      </div>
      {problem === undefined ? null : <p class="muted">{problem}</p>}
      {history === undefined ? null : (
        <div class="plots">
          {plots.map((plot) => (
            <Plot key={`${plot.title} ${since}`} plot={plot} history={history} limits={limits} />
          ))}
        </div>
      )}
    </section>
  );
}

function useHistory(
  read: PlotsProps['read'],
  since: Span,
  of: string,
): { readonly history: History | undefined; readonly problem: string | undefined } {
  const [history, setHistory] = useState<History>();
  const [problem, setProblem] = useState<string>();
  const current = useRef(read);
  current.current = read;
  useEffect(() => {
    const ended = new AbortController();
    const once = async (): Promise<void> => {
      if (document.visibilityState === 'hidden') return;
      try {
        const next = await current.current(since, ended.signal);
        if (ended.signal.aborted) return;
        setHistory(next);
        setProblem(next === undefined ? 'There are no samples yet.' : next.note);
      } catch (error) {
        if (!ended.signal.aborted) setProblem(`The history cannot be read: ${messageOf(error)}`);
      }
    };
    setHistory(undefined);
    setProblem('The history is being read.');
    void once();
    const id = setInterval(() => void once(), REFRESH_MS[since]);
    return () => {
      ended.abort();
      clearInterval(id);
    };
  }, [since, of]);
  return { history, problem };
}

interface PlotProps {
  readonly plot: PlotSpec;
  readonly history: History;
  readonly limits: Readonly<Record<string, number>>;
}

function Plot({ plot: { title, lines }, history, limits }: PlotProps) {
  const parent = useRef<HTMLDivElement>(null);
  const opened = useRef<OpenPlot>(undefined);
  const colours = theme.value;
  const limit = limits[lines[0]?.metric ?? ''];
  const { options, texts } = useMemo(() => contentOf(lines, history, limit), [lines, history, limit]);
  const latest = useRef(options);
  latest.current = options;
  const isEmpty = texts.length === 0;
  // An open plot cannot change its lines, so it is opened again when a metric appears or ends.
  const shape = options.series.map(({ label }) => label).join('\n');
  useEffect(() => {
    if (isEmpty) return;
    let isShown = true;
    void import('../widgets/plot.ts').then(({ openPlot }) => {
      if (isShown && parent.current !== null) opened.current = openPlot(parent.current, latest.current);
    }, showFailure);
    return () => {
      isShown = false;
      opened.current?.close();
      opened.current = undefined;
    };
  }, [colours, isEmpty, shape]);
  useEffect(() => opened.current?.update(options), [options]);
  return (
    <figure class="card">
      <figcaption>
        <strong>{title}</strong>
        {isEmpty ? <p class="muted">There are no samples of this yet, or the host does not measure it.</p> : null}
        {texts.map((text) => (
          <p key={text}>{text}</p>
        ))}
      </figcaption>
      {isEmpty ? null : <div ref={parent} class="plot" role="img" aria-label={`Plot: ${title}. ${texts.join('. ')}`} />}
    </figure>
  );
}

function contentOf(
  lines: PlotSpec['lines'],
  { times, metrics }: History,
  limit: number | undefined,
): { readonly options: PlotOptions; readonly texts: readonly string[] } {
  const found = lines.flatMap(({ metric, label }) => {
    const values = metrics.get(metric);
    return values === undefined ? [] : [{ label, values }];
  });
  const unit = found[0]?.values.unit ?? '';
  const texts = found.flatMap(({ label, values }) => summaryOf(label, values) ?? []);
  const series = found.map(({ label, values }) => ({ label, values: values.average }));
  const whole = limit === undefined ? [] : [{ label: 'capacity', values: times.map(() => limit), isDashed: true }];
  return {
    texts: limit === undefined || texts.length === 0 ? texts : [...texts, `capacity: ${valueText(limit, unit)}`],
    options: {
      times,
      series: [...series, ...whole],
      format: (value) => valueText(value, unit),
      isBinary: /^bytes/.test(unit),
    },
  };
}
