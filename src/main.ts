import { start } from './cli/start.ts';

start();
