/**
 * The command line: selects and runs a command. Exit codes: 0 success, 1 failure, 2 usage error. Errors are one line.
 */
import { parseArgs } from 'node:util';
import { messageOf } from '../base/errors.ts';
import { COMMON_FLAGS, type Command, type Flag, type Output, toParseArgs, UsageError } from './command.ts';
import { type Invocation, isClientVerb, linkOf } from './links.ts';
import { withoutSystemErrors } from './system-errors.ts';

interface Entry {
  readonly summary: string;
  load(): Promise<Command>;
}

/** Commands by name, which may be two words. They are loaded when they are used. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  run: {
    summary: 'run the host process: kubelet, service proxy and, as static pods, the control plane',
    load: async () => (await import('./commands/processes/run.ts')).runCommand,
  },
  install: {
    summary: 'install this executable as a service, start it and wait until the node is Ready',
    load: async () => (await import('./commands/host/install.ts')).installCommand,
  },
  reset: {
    summary: 'leave the cluster and stop everything; data is kept aside',
    load: async () => (await import('./commands/host/uninstall.ts')).resetCommand,
  },
  uninstall: {
    summary: 'stop everything and remove what install has put on this host',
    load: async () => (await import('./commands/host/uninstall.ts')).uninstallCommand,
  },
  'config check': {
    summary: 'check the bootstrap file and its drop-ins',
    load: async () => (await import('./commands/host/config.ts')).checkCommand,
  },
  'config show': {
    summary: 'show the settings of this host and where each is from',
    load: async () => (await import('./commands/host/config.ts')).showCommand,
  },
  'config schema': {
    summary: 'print the JSON schema of the bootstrap file',
    load: async () => (await import('./commands/host/config.ts')).schemaCommand,
  },
  'volume-call': {
    summary: 'change or bind a volume outside of the host process; started by it',
    load: async () => (await import('./commands/processes/volume-call.ts')).volumeCallCommand,
  },
  'keep-balancer': {
    summary: 'keep the API balancer’s port open while the host process restarts; started by it',
    load: async () => (await import('./commands/processes/keep-balancer.ts')).keepBalancerCommand,
  },
  proxy: {
    summary: 'run the service proxy alone',
    load: async () => (await import('./commands/processes/proxy.ts')).proxyCommand,
  },
  etcd: {
    summary: 'run the store: etcd’s API on SQLite',
    load: async () => (await import('./commands/processes/etcd.ts')).etcdCommand,
  },
  api: { summary: 'run the API server', load: async () => (await import('./commands/processes/api.ts')).apiCommand },
  controllers: {
    summary: 'run the controllers and the scheduler',
    load: async () => (await import('./commands/processes/controllers.ts')).controllersCommand,
  },
  hollow: {
    summary: 'register hollow nodes for tests of the control plane',
    load: async () => (await import('./commands/processes/hollow.ts')).hollowCommand,
  },
  'revisions list': {
    summary: 'list the revisions of the control plane on this host',
    load: async () => (await import('./commands/cluster/revisions.ts')).listCommand,
  },
  'revisions diff': {
    summary: 'show how the input files of two revisions differ',
    load: async () => (await import('./commands/cluster/revisions.ts')).diffCommand,
  },
  'revisions rollback': {
    summary: 'restore the configuration files of a revision',
    load: async () => (await import('./commands/cluster/revisions.ts')).rollbackCommand,
  },
  'gossip members': {
    summary: 'list the members of the gossip ring',
    load: async () => (await import('./commands/cluster/gossip.ts')).membersCommand,
  },
  'gossip join': {
    summary: 'join this host to a gossip ring',
    load: async () => (await import('./commands/cluster/gossip.ts')).joinCommand,
  },
  'gossip leave': {
    summary: 'remove this host from the gossip ring',
    load: async () => (await import('./commands/cluster/gossip.ts')).leaveCommand,
  },
  'gossip keys': {
    summary: 'list and rotate the encryption keys of the gossip ring',
    load: async () => (await import('./commands/cluster/gossip.ts')).keysCommand,
  },
  'gossip keygen': {
    summary: 'print a new keyring file',
    load: async () => (await import('./commands/cluster/gossip.ts')).keygenCommand,
  },
  members: {
    summary: 'list the store’s members with their status',
    load: async () => (await import('./commands/store/members.ts')).membersCommand,
  },
  'members list': {
    summary: 'same as members',
    load: async () => (await import('./commands/store/members.ts')).listCommand,
  },
  'members add': {
    summary: 'add a member to the store’s cluster',
    load: async () => (await import('./commands/store/members.ts')).addCommand,
  },
  'members remove': {
    summary: 'remove a member from the store’s cluster',
    load: async () => (await import('./commands/store/members.ts')).removeCommand,
  },
  'members promote': {
    summary: 'promote a learner to a voting member',
    load: async () => (await import('./commands/store/members.ts')).promoteCommand,
  },
  'members recover': {
    summary: 'restart the store’s cluster from one member after a permanent quorum loss',
    load: async () => (await import('./commands/store/recover.ts')).recoverCommand,
  },
  'members new-cluster': {
    summary: 'give up a missing store: the next start founds a new cluster',
    load: async () => (await import('./commands/store/new-cluster.ts')).newClusterCommand,
  },
  'rig list': {
    summary: 'list the rigs with their holders and queues',
    load: async () => (await import('./commands/cluster/rig.ts')).listCommand,
  },
  'rig claim': {
    summary: 'claim a rig',
    load: async () => (await import('./commands/cluster/rig.ts')).claimCommand,
  },
  'rig release': {
    summary: 'release a claim on a rig',
    load: async () => (await import('./commands/cluster/rig.ts')).releaseCommand,
  },
  'rig console': {
    summary: 'open the serial console of a rig',
    load: async () => (await import('./commands/cluster/rig.ts')).consoleCommand,
  },
  'rig power': {
    summary: 'switch the board of a rig on, off, or off and on',
    load: async () => (await import('./commands/cluster/rig.ts')).powerCommand,
  },
  'image import': {
    summary: 'import images from docker-archive or oci-archive files',
    load: async () => (await import('./commands/host/image.ts')).importCommand,
  },
  'image list': {
    summary: 'list the images of this host',
    load: async () => (await import('./commands/host/image.ts')).listCommand,
  },
  'image remove': {
    summary: 'remove images',
    load: async () => (await import('./commands/host/image.ts')).removeCommand,
  },
  'image export': {
    summary: 'write images to a docker-archive file',
    load: async () => (await import('./commands/host/image.ts')).exportCommand,
  },
  'image pull': {
    summary: 'pull images from their registries',
    load: async () => (await import('./commands/host/image.ts')).pullCommand,
  },
  'image pin': {
    summary: 'keep images when the disk fills',
    load: async () => (await import('./commands/host/image.ts')).pinCommand,
  },
  'image unpin': {
    summary: 'release pinned images',
    load: async () => (await import('./commands/host/image.ts')).unpinCommand,
  },
  'image verify': {
    summary: 'verify the stored images against their digests',
    load: async () => (await import('./commands/host/image.ts')).verifyCommand,
  },
  'snapshot save': {
    summary: 'save a snapshot of the store',
    load: async () => (await import('./commands/store/snapshot.ts')).saveCommand,
  },
  'snapshot list': {
    summary: 'list and verify the snapshots of this host',
    load: async () => (await import('./commands/store/snapshot.ts')).listCommand,
  },
  'snapshot status': {
    summary: 'verify a snapshot and show its content',
    load: async () => (await import('./commands/store/snapshot.ts')).statusCommand,
  },
  'snapshot restore': {
    summary: 'create a data directory from a snapshot or a running etcd',
    load: async () => (await import('./commands/store/snapshot.ts')).restoreCommand,
  },
  'snapshot push': {
    summary: 'write a snapshot into a running etcd',
    load: async () => (await import('./commands/store/snapshot.ts')).pushCommand,
  },
  'snapshot schedule': {
    summary: 'show or change the snapshot schedule of this host',
    load: async () => (await import('./commands/store/snapshot.ts')).scheduleCommand,
  },
  'master-restart': {
    summary: 'restart api, controllers or etcd',
    load: async () => (await import('./commands/host/master.ts')).restartCommand,
  },
  'master-logs': {
    summary: 'show the log of a control-plane container',
    load: async () => (await import('./commands/host/master.ts')).logsCommand,
  },
  'haproxy-config': {
    summary: 'print a configuration of HAProxy before the API servers',
    load: async () => (await import('./commands/cluster/balancers.ts')).haproxyConfigCommand,
  },
  'keepalived-config': {
    summary: 'print a configuration of keepalived for a shared address',
    load: async () => (await import('./commands/cluster/balancers.ts')).keepalivedConfigCommand,
  },
  'secrets-encrypt status': {
    summary: 'show the encryption status of stored objects',
    load: async () => (await import('./commands/store/secrets-encrypt.ts')).encryptionStatusCommand,
  },
  'secrets-encrypt rotate': {
    summary: 'rotate the key for encryption at rest',
    load: async () => (await import('./commands/store/secrets-encrypt.ts')).rotateEncryptionCommand,
  },
  'secrets-encrypt reencrypt': {
    summary: 're-encrypt objects that are stored with another key',
    load: async () => (await import('./commands/store/secrets-encrypt.ts')).reencryptCommand,
  },
  'ca rotate': {
    summary: 'rotate the cluster’s authorities and service account keys',
    load: async () => (await import('./commands/cluster/ca.ts')).rotateCommand,
  },
  'bundle create': {
    summary: 'write a release as a signed file',
    load: async () => (await import('./commands/cluster/bundle.ts')).createBundleCommand,
  },
  'bundle offline': {
    summary: 'write one signed file for hosts without a network',
    load: async () => (await import('./commands/cluster/bundle.ts')).offlineBundleCommand,
  },
  'bundle verify': {
    summary: 'check the signature and the files of a release',
    load: async () => (await import('./commands/cluster/bundle.ts')).verifyBundleCommand,
  },
  'bundle import': {
    summary: 'offer a release to the cluster as an update',
    load: async () => (await import('./commands/cluster/bundle.ts')).importBundleCommand,
  },
  'bundle list': {
    summary: 'list the releases that were imported',
    load: async () => (await import('./commands/cluster/bundle.ts')).listBundlesCommand,
  },
  'bundle remove': {
    summary: 'take a release back',
    load: async () => (await import('./commands/cluster/bundle.ts')).removeBundleCommand,
  },
  'update-guard': {
    summary: 'go back to the former executable when an update fails; started by the service',
    load: async () => (await import('./commands/cluster/bundle.ts')).guardCommand,
  },
  gather: {
    summary: 'collect the state of the cluster as files; run by oc adm must-gather',
    load: async () => (await import('./commands/cluster/gather.ts')).gatherCommand,
  },
  'kubeadmin create': {
    summary: 'create the user kubeadmin and print its password',
    load: async () => (await import('./commands/cluster/kubeadmin.ts')).createKubeadminCommand,
  },
  'token create': {
    summary: 'create a token for joining hosts and print the join command',
    load: async () => (await import('./commands/cluster/token.ts')).createTokenCommand,
  },
  'token list': {
    summary: 'list the tokens for joining hosts',
    load: async () => (await import('./commands/cluster/token.ts')).listTokensCommand,
  },
  'token revoke': {
    summary: 'revoke a token for joining hosts',
    load: async () => (await import('./commands/cluster/token.ts')).revokeTokenCommand,
  },
  status: {
    summary: 'show the node and its control-plane components',
    load: async () => (await import('./commands/host/status.ts')).statusCommand,
  },
  envtest: {
    summary: 'prepare a directory with etcd and kube-apiserver for controller-runtime’s envtest',
    load: async () => (await import('./commands/processes/envtest.ts')).envtestCommand,
  },
  'machine-config replay': {
    summary: 'finish or undo an interrupted change of the machine config',
    load: async () => (await import('./commands/host/machine-config.ts')).replayMachineConfigCommand,
  },
  doctor: {
    summary: 'check this host and its cluster, and print a fix for each problem',
    load: async () => (await import('./commands/host/doctor.ts')).doctorCommand,
  },
  'doctor-probe': {
    summary: 'measure a file system or a network for doctor; started by it',
    load: async () => (await import('./commands/host/doctor.ts')).doctorProbeCommand,
  },
  sysinfo: {
    summary: 'show the hardware and the kernel features of this host',
    load: async () => (await import('./commands/host/sysinfo.ts')).sysinfoCommand,
  },
  version: {
    summary: 'show versions or third-party licenses',
    load: async () => (await import('./commands/version.ts')).versionCommand,
  },
};

export interface MainOptions extends Invocation {
  /** Default: stdout and stderr of the process. */
  readonly out?: Output;
}

/** Runs one command and returns the exit code; never rejects. */
export async function main(options: MainOptions): Promise<number> {
  const out = options.out ?? processOutput;
  const link = linkOf(options);
  const linked = link?.command;
  const argv = link === undefined ? [...options.argv] : [link.command, ...link.argv];
  const verbose = argv.includes('--verbose');
  try {
    if (linked === 'kubectl' || isClientVerb(argv) || argv[0] === 'kubectl') {
      const { runClient } = await import('./commands/kubectl.ts');
      return await runClient(
        linked === 'kubectl' || argv[0] === 'kubectl' ? argv.slice(1) : argv,
        linked ?? 'hyperedge',
      );
    }
    if (linked === 'etcd')
      return await runCommand(
        (await import('./commands/processes/etcd.ts')).linkedEtcdCommand,
        argv.slice(1),
        out,
        linked,
      );
    if (linked === 'api')
      return await runCommand(
        (await import('./commands/processes/api.ts')).linkedApiCommand,
        argv.slice(1),
        out,
        linked,
      );
    return await dispatch(argv, out);
  } catch (error) {
    const usage = error instanceof UsageError;
    const name = linked === 'etcd' || linked === 'api' ? (link?.name ?? linked) : 'hyperedge';
    out.stderr(`${name}: ${withoutSystemErrors(messageOf(error).replaceAll(/\s*\n\s*/g, ' '))}\n`);
    if (verbose && error instanceof Error && error.stack !== undefined) out.stderr(`${stackOf(error)}\n`);
    return usage ? 2 : 1;
  }
}

async function dispatch(argv: readonly string[], out: Output): Promise<number> {
  const [first, second] = argv;
  if (first === undefined) {
    out.stderr(overview());
    return 2;
  }
  if (first === '--help' || first === '-h' || first === 'help') {
    out.stdout(overview());
    return 0;
  }
  if (first === '--version') return dispatch(['version'], out);
  const pair = `${first} ${second ?? ''}`;
  const name = Object.hasOwn(COMMANDS, pair) ? pair : Object.hasOwn(COMMANDS, first) ? first : undefined;
  const entry = name === undefined ? undefined : COMMANDS[name];
  if (name === undefined || entry === undefined) {
    const group = Object.keys(COMMANDS).filter((each) => each.startsWith(`${first} `));
    if (group.length > 0 && (second === undefined || second.startsWith('-'))) {
      const isHelp = second === '--help' || second === '-h';
      (isHelp ? out.stdout : out.stderr)(listing(group));
      return isHelp ? 0 : 2;
    }
    const shown = group.length > 0 && second !== undefined ? pair : first;
    throw new UsageError(`unknown command "${shown}": see hyperedge --help`);
  }
  const command = await entry.load();
  return runCommand(command, argv.slice(name.split(' ').length), out, name);
}

async function runCommand(command: Command, argv: readonly string[], out: Output, name: string): Promise<number> {
  if (command.arguments === 'own') return command.run({ flags: {}, positionals: argv, out });
  const flags = { ...command.flags, ...COMMON_FLAGS };
  let parsed: { values: Record<string, string | boolean | (string | boolean)[] | undefined>; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...argv], options: toParseArgs(flags), allowPositionals: true, strict: true });
  } catch (error) {
    // The first sentence of Node's message names the flag; the rest is advice about quoting.
    throw new UsageError(`${messageOf(error).split('. ')[0]}: see hyperedge ${name} --help`);
  }
  if (parsed.values['help'] === true) {
    out.stdout(helpOf(command, flags));
    return 0;
  }
  const [fewest, most] = command.arguments;
  if (parsed.positionals.length < fewest || parsed.positionals.length > most) {
    throw new UsageError(`usage: hyperedge ${command.usage}`);
  }
  return command.run({ flags: parsed.values, positionals: parsed.positionals, out });
}

function overview(): string {
  return `hyperedge: a Kubernetes control plane and node in one executable\n\nUsage: hyperedge COMMAND [FLAGS]\n\n${listing(
    Object.keys(COMMANDS),
  )}\nhyperedge COMMAND --help shows a command's flags.\nhyperedge kubectl --help lists the verbs of the built-in client, such as get, apply and logs.\n`;
}

function listing(names: readonly string[]): string {
  const width = Math.max(...names.map((name) => name.length)) + 2;
  return names.map((name) => `  ${name.padEnd(width)}${COMMANDS[name]?.summary ?? ''}\n`).join('');
}

function helpOf(command: Command, flags: Readonly<Record<string, Flag>>): string {
  const lines = Object.entries(flags).map(([name, flag]) => {
    const short = flag.short === undefined ? '    ' : `-${flag.short}, `;
    return { left: `${short}--${name}${flag.type === 'string' ? ` ${flag.value ?? 'VALUE'}` : ''}`, help: flag.help };
  });
  const width = Math.max(...lines.map(({ left }) => left.length)) + 2;
  const description = command.description === undefined ? '' : `\n${command.description}\n`;
  return `Usage: hyperedge ${command.usage}\n\n${command.summary}\n${description}\nFlags:\n${lines
    .map(({ left, help }) => `  ${left.padEnd(width)}${help}\n`)
    .join('')}`;
}

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by: ${stackOf(error.cause)}` : '';
  return `${error.stack ?? error.message}${cause}`;
}

const processOutput: Output = {
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
};
