export { noAnswerOf, noAnswerText } from './no-answer.ts';
export { exitCodeOf, reportOf } from './report.ts';
export { type HostView, type TextOptions, textOf } from './report-text.ts';
