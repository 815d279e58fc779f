/** Plots over time. They are a separate chunk, so load it with `import()`. */
import uPlot from 'uplot';

export interface Series {
  readonly label: string;
  /** One value for each time; null if there is no value. */
  readonly values: readonly (number | null)[];
  readonly isDashed?: boolean;
}

export interface PlotOptions {
  /** Times in seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly height?: number;
  /** Returns the text of a value for the axis and the legend. */
  readonly format: (value: number) => string;
  /** Whether the unit has binary prefixes, so that the values of the axis are powers of two. */
  readonly isBinary?: boolean;
}

export interface OpenPlot {
  /** Replaces the values of the series. */
  update(options: PlotOptions): void;
  close(): void;
}

const HEIGHT = 140;
const DAY_SECONDS = 86_400;
const DASH = [6, 4];

/** Steps between the values of an axis with binary prefixes, up to a pebibyte. */
const BINARY_STEPS = Array.from({ length: 51 }, (_, exponent) => 2 ** exponent);

const CHARACTER_WIDTH = 7;
const MIN_AXIS_WIDTH = 50;

/** Values of an axis. Neighbours with the same text, because it is rounded, get it only once. */
const axisTexts = (values: readonly number[], format: (value: number) => string): string[] =>
  values.map(format).map((text, index, texts) => (text === texts[index - 1] ? '' : text));

/** Range that begins at zero. A plot of zeros only ends at one instead of the library's hundred. */
const rangeOf = (min: number | null, max: number | null): [number, number] => {
  const from = Math.min(0, min ?? 0);
  const to = max ?? 0;
  return to > from ? [from, to + 0.1 * (to - from)] : [from, from + 1];
};

const dataOf = ({ times, series }: PlotOptions): uPlot.AlignedData => [
  [...times],
  ...series.map(({ values }) => [...values]),
];

/** Text of a time: the time of day, and the date in plots of more than a day. */
function timeText(seconds: number, isLong: boolean): string {
  const date = new Date(seconds * 1000);
  const two = (value: number): string => String(value).padStart(2, '0');
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return isLong ? `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}` : time;
}

/**
 * Draws a plot as wide as `parent`, with the colours of the current theme. Open it again after a change of the theme.
 */
export function openPlot(parent: HTMLElement, options: PlotOptions): OpenPlot {
  const styles = getComputedStyle(parent);
  const colour = (name: string): string => styles.getPropertyValue(name).trim();
  const { format, height = HEIGHT } = options;
  const { times } = options;
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > 1.1 * DAY_SECONDS;
  const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
  const plot = new uPlot(
    {
      width: Math.max(parent.clientWidth, 1),
      height,
      cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, min, max) => rangeOf(min, max) } },
      axes: [
        {
          ...axis,
          size: 30,
          space: isLong ? 130 : 60,
          values: (_, values) => values.map((each) => timeText(each, isLong)),
        },
        {
          ...axis,
          ...(options.isBinary === true ? { incrs: BINARY_STEPS } : {}),
          size: (_, texts) =>
            Math.max(MIN_AXIS_WIDTH, ...(texts ?? []).map(({ length }) => length * CHARACTER_WIDTH + 12)),
          values: (_, values) => axisTexts(values, format),
        },
      ],
      series: [
        { label: 'time', value: (_: uPlot, at: number | null) => (at === null ? '–' : timeText(at, isLong)) },
        ...options.series.map(({ label, isDashed }, index) => ({
          label,
          ...(isDashed === true ? { dash: DASH, points: { show: false } } : {}),
          stroke: colour(`--series-${(index % 6) + 1}`),
          width: 1.5,
          spanGaps: false,
          value: (_: uPlot, value: number | null) => (value === null ? '–' : format(value)),
        })),
      ],
    },
    dataOf(options),
    parent,
  );
  const sizes = new ResizeObserver(() => plot.setSize({ width: Math.max(parent.clientWidth, 1), height }));
  sizes.observe(parent);
  return {
    update: (next) => plot.setData(dataOf(next)),
    close: () => {
      sizes.disconnect();
      plot.destroy();
    },
  };
}
