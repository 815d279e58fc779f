export { Authorization, actionOf, DEFAULT_AUTHORIZERS } from './authorization.ts';
