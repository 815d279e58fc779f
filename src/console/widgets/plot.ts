/** Plots over time. */
import uPlot from 'uplot';

export interface Series {
  readonly label: string;
  /** One value for each time; null where there is none. */
  readonly values: readonly (number | null)[];
}

export interface PlotOptions {
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly height?: number;
  /** Text of a value on the axis and in the legend. */
  readonly format: (value: number) => string;
}

export interface OpenPlot {
  /** Shows other values of the same series. */
  update(options: PlotOptions): void;
  close(): void;
}

const HEIGHT = 140;

const dataOf = ({ times, series }: PlotOptions): uPlot.AlignedData => [
  [...times],
  ...series.map(({ values }) => [...values]),
];

/** Draws a plot as wide as `parent`. Its colours are those of the theme at the call: open it again after a switch. */
export function openPlot(parent: HTMLElement, options: PlotOptions): OpenPlot {
  const styles = getComputedStyle(parent);
  const colour = (name: string): string => styles.getPropertyValue(name).trim();
  const { format, height = HEIGHT } = options;
  const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
  const plot = new uPlot(
    {
      width: Math.max(parent.clientWidth, 1),
      height,
      cursor: { drag: { x: false, y: false } },
      scales: { y: { range: { min: { soft: 0, mode: 1 }, max: { pad: 0.1 } } } },
      axes: [axis, { ...axis, size: 60, values: (_, values) => values.map(format) }],
      series: [
        {},
        ...options.series.map(({ label }, index) => ({
          label,
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
