export { createHollowNodes } from './hollow.ts';
