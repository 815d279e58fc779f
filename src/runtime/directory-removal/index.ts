import type { Trees } from './port.ts';
import { removeTree } from './remove.ts';
import { treeUsage } from './usage.ts';

export const trees: Trees = { remove: removeTree, usage: treeUsage };
