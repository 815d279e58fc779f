/** The gossip part of a host process: `node gossip-host.child.ts ROOT`. Stops cleanly on SIGTERM. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { loadSettings } from '../../src/host/config/settings.ts';
import { startGossip } from '../../src/host/network/gossip.ts';
import { createProcessLog } from '../../src/host/process/process.ts';

const settings = await loadSettings({ root: process.argv[2] });
await mkdir(dirname(settings.paths.agentSocket), { recursive: true, mode: 0o700 });
const gossip = await startGossip(settings, createProcessLog(settings.nodeName, 4));
process.on('SIGTERM', () => void gossip.stop().then(() => process.exit(0)));
