/** Plots series of numbers on a terminal. Values that are not numbers are shown as gaps. */

export interface PlotStyle {
  readonly width: number;
  readonly height: number;
  /** Whether the terminal supports Unicode. */
  readonly isUnicode: boolean;
  /** Returns the text of a value for the axis. */
  format(value: number): string;
}

export type Point = number | null | undefined;

const BLOCKS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;
const ASCII = ['.', ':', '-', '=', '+', '*', '#', '@'] as const;
const AXIS_WIDTH = 10;

export const plotWidth = (columns: number): number => Math.max(10, columns - AXIS_WIDTH - 2);

const isNumber = (value: Point): value is number => typeof value === 'number' && Number.isFinite(value);

/**
 * Lines of a plot with the axis on the left, from top to bottom. The axis begins at zero unless all values are far from
 * zero. Each point has a column; if there are more points than columns, each column shows the highest of its points.
 */
export function plotLines(points: readonly Point[], style: PlotStyle): readonly string[] {
  const { width, height, isUnicode, format } = style;
  const columns = fitted(points, width);
  const numbers = columns.filter(isNumber);
  if (numbers.length === 0) return [];
  const top = Math.max(...numbers);
  const least = Math.min(...numbers);
  const bottom = least > 0 && least < top && least > top * 0.8 ? least - (top - least) * 0.1 : Math.min(0, least);
  const range = top - bottom || 1;
  const levels = isUnicode ? BLOCKS : ASCII;
  const perRow = levels.length;
  const heights = columns.map((value) =>
    isNumber(value) ? Math.max(1, Math.round(((value - bottom) / range) * height * perRow)) : 0,
  );
  return Array.from({ length: height }, (_, row) => {
    const base = (height - 1 - row) * perRow;
    const cells = heights.map((value) => {
      const part = Math.min(perRow, value - base);
      return part <= 0 ? ' ' : (levels[part - 1] ?? ' ');
    });
    const label = row === 0 ? format(top) : row === height - 1 ? format(bottom) : '';
    return `${label.padStart(AXIS_WIDTH)} ${isUnicode ? '┤' : '|'}${cells.join('')}`.trimEnd();
  });
}

/** The line below a plot, with the start time on the left and the end time on the right. */
export function timeAxis(from: string, to: string, width: number): string {
  const gap = Math.max(1, width - from.length - to.length);
  return `${' '.repeat(AXIS_WIDTH + 2)}${from}${' '.repeat(gap)}${to}`;
}

/** Reduces the points to at most `width`. Each remaining point is the highest of those that it replaces. */
function fitted(points: readonly Point[], width: number): readonly Point[] {
  if (points.length <= width) return points;
  return Array.from({ length: width }, (_, at) => {
    const from = Math.floor((at * points.length) / width);
    const to = Math.max(from + 1, Math.floor(((at + 1) * points.length) / width));
    return points.slice(from, to).reduce<Point>((highest, value) => {
      if (!isNumber(value)) return highest;
      return isNumber(highest) ? Math.max(highest, value) : value;
    }, undefined);
  });
}

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'] as const;

/** A value of the usage history with its unit, in at most nine characters. */
export function valueText(value: number, unit: string): string {
  switch (unit) {
    case 'cores':
      return value < 1 ? `${Math.round(value * 1_000)}m` : short(value);
    case 'bytes':
      return bytesText(value);
    case 'bytes/s':
      return `${bytesText(value)}/s`;
    case 'ratio':
      return `${short(value * 100)}%`;
    case 'celsius':
      return `${short(value)}C`;
    case 'seconds':
      return value < 1 ? `${short(value * 1_000)}ms` : `${short(value)}s`;
    case 'operations/s':
      return `${short(value)}/s`;
    default:
      return short(value);
  }
}

const short = (value: number): string => String(Number(value.toPrecision(3)));

function bytesText(value: number): string {
  let [amount, unit] = [value, 0];
  while (amount >= 1_024 && unit < BINARY.length - 1) {
    amount /= 1_024;
    unit += 1;
  }
  return `${amount >= 100 ? Math.round(amount) : short(amount)}${BINARY[unit]}`;
}
