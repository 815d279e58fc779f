export { compileRegexp, type Regexp } from './regexp.ts';
