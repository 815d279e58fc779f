export { exitCodeOf, reportOf } from './report.ts';
export { type HostView, type TextOptions, textOf } from './text.ts';
