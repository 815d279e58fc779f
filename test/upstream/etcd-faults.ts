/**
 * Runs etcd's functional tester (Debian's source package, 3.4) with the packaged executable instead of etcd. Three
 * agents start members, write through all of them, stop and kill members, delete their data, and cut or delay their
 * network; afterwards hashes and leases must be equal. Excluded are cases that need failpoints compiled into etcd, and
 * cases that wait for a number of commits, which a busy machine does not reach.
 *
 *   npm run build && npm run test:upstream:faults [-- --baseline] [--etcd FILE] [--case NAME]... [--qps N]
 *
 * Needs root. Prints one line per case; the exit code is 1 if one failed. The tester's output is in
 * dist/upstream/reports.
 */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parse, stringify } from 'yaml';
import { ensurePrograms, TEST_PROGRAMS } from '../../build/host-packages.ts';
import { isolated, placeBinaries, REPORTS } from './sources/place.ts';
import { upstreamSource } from './sources/sources.ts';

const CASES = [
  'NO_FAIL_WITH_STRESS',
  'SIGTERM_ONE_FOLLOWER',
  'SIGTERM_LEADER',
  'SIGTERM_QUORUM',
  'SIGTERM_ALL',
  'SIGQUIT_AND_REMOVE_ONE_FOLLOWER',
  'BLACKHOLE_PEER_PORT_TX_RX_LEADER',
  'BLACKHOLE_PEER_PORT_TX_RX_QUORUM',
  'BLACKHOLE_PEER_PORT_TX_RX_ALL',
  'DELAY_PEER_PORT_TX_RX_LEADER',
  'RANDOM_DELAY_PEER_PORT_TX_RX_ALL',
  'NO_FAIL_WITH_NO_STRESS_FOR_LIVENESS',
];

const { values: flags } = parseArgs({
  options: {
    baseline: { type: 'boolean', default: false },
    etcd: { type: 'string' },
    case: { type: 'string', multiple: true, default: CASES },
    qps: { type: 'string', default: '400' },
  },
});

interface TesterConfig {
  'agent-configs': Array<{ 'etcd-exec': string; 'agent-addr': string }>;
  'tester-config': Record<string, unknown>;
}

/** Upstream's configuration with all paths below `scratch`, the selected cases in order, and less load. */
async function configure(upstream: string, scratch: string, bin: string): Promise<TesterConfig> {
  const text = await readFile(join(upstream, 'functional.yaml'), 'utf8');
  const below = text.replaceAll('/tmp/etcd-functional-', `${scratch}/member-`);
  const config = parse(below.replaceAll('/tmp/etcd-tester-data', `${scratch}/tester`)) as TesterConfig;
  for (const agent of config['agent-configs']) agent['etcd-exec'] = join(bin, 'etcd');
  Object.assign(config['tester-config'], {
    cases: flags.case,
    'case-shuffle': false,
    'case-delay-ms': 3000,
    'stress-clients': 20,
    'stress-qps': Number(flags.qps),
    'runner-exec-path': join(scratch, 'etcd-runner'),
  });
  return config;
}

interface Line {
  readonly msg?: string;
  readonly desc?: string;
  readonly error?: string;
}

function linesOf(text: string): Line[] {
  return text.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Line] : []));
}

await ensurePrograms(TEST_PROGRAMS, console.log);
const scratch = await mkdtemp(join(tmpdir(), 'he-faults-'));
const source = await upstreamSource('etcd');
console.log(`building the functional tester of etcd ${source.version}`);
await source.go([
  'build',
  '-o',
  `${scratch}/`,
  ...['agent', 'tester', 'runner'].map((name) => `./functional/cmd/etcd-${name}`),
]);
const bin = await placeBinaries(scratch, { baseline: flags.baseline, etcd: flags.etcd });
const config = await configure(source.directory, scratch, bin);
await writeFile(join(scratch, 'functional.yaml'), stringify(config));
await mkdir(REPORTS, { recursive: true });
const agents = config['agent-configs'].map((agent) => `./etcd-agent --network tcp --address ${agent['agent-addr']} &`);
const script = `{ ${agents.join(' ')} } > agents.log 2>&1; sleep 1; ./etcd-tester --config functional.yaml`;
const [program = '', ...args] = isolated(`${script}; exit $?`, []);
const child = spawn(program, args, { cwd: scratch, stdio: ['ignore', 'pipe', 'pipe'] });
let output = '';
for (const stream of [child.stdout, child.stderr])
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
await new Promise((resolve, reject) => {
  child.once('error', reject).once('close', resolve);
});
const report = join(REPORTS, `faults-${flags.baseline ? 'baseline' : 'ours'}.log`);
await writeFile(report, output);
await rm(scratch, { recursive: true, force: true });
const lines = linesOf(output);
const passed = new Set(lines.filter(({ msg }) => msg === 'consistency check PASS').map(({ desc }) => desc));
for (const name of flags.case) console.log(`${passed.has(name) ? 'passed' : 'failed'} ${name}`);
for (const { msg, error } of lines)
  if (msg === 'round FAIL' || msg === 'Bootstrap failed') console.log(`${msg}: ${error}`);
console.log(`${passed.size} passed, ${flags.case.length - passed.size} failed (${report})`);
process.exit(passed.size === flags.case.length ? 0 : 1);
