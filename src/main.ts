import './base/short-buffers.ts';
import { start } from './cli/start.ts';

start();
