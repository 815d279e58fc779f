import { spawn } from 'node:child_process';
import { anything, decodeJson, list, object, optional, text } from '../../../../base/decode.ts';
import { CodedError, messageOf } from '../../../../base/errors.ts';
import { ownTransaction } from '../../../../base/linux/nftables-mark.ts';
import type { Log } from '../../../../base/log.ts';
import type { PacketFilter, TimedMembers } from '../../core/port.ts';

export interface NftOptions {
  readonly nftPath?: string;
  readonly ipPath?: string;
  /** Link to which service traffic is routed: the pod bridge. */
  readonly serviceRouteLink: string;
  readonly log: Log;
}

/** Creates a packet filter that runs `nft -f -` for each transaction, which the kernel applies atomically. */
export function createNftFilter(options: NftOptions): PacketFilter {
  const nft = options.nftPath ?? 'nft';
  const ip = options.ipPath ?? 'ip';
  return {
    async probe() {
      const table = `hyperedge-probe-${process.pid}`;
      try {
        // This program uses the features that some kernels lack: verdict maps, numgen, dnat by a map and masquerade.
        // With -c, nft checks the program without applying it.
        await run(
          nft,
          ['-c', '-f', '-'],
          `table ip ${table} {\n map m { type ipv4_addr . inet_proto . inet_service : verdict; }
 chain e { meta l4proto tcp dnat to 192.0.2.1:1; }\n chain c { numgen random mod 1 vmap { 0 : goto e }; }
 map d { typeof meta l4proto . th dport . numgen random mod 2 : ip daddr . th dport; elements = { tcp . 1 . 0 : 192.0.2.1 . 1 }; }
 chain s { dnat ip to meta l4proto . th dport . numgen random mod 2 map @d; }
 chain p { type nat hook postrouting priority srcnat; masquerade; }\n}\n`,
        );
        return undefined;
      } catch (error) {
        return messageOf(error);
      }
    },
    async apply(program) {
      options.log.v(8, 'nft transaction', { program });
      await run(nft, ['-f', '-'], ownTransaction(program));
    },
    async elements(family, table, set) {
      const text = await run(nft, ['-j', 'list', 'set', family === 6 ? 'ip6' : 'ip', table, set], '');
      return elementsOf(text);
    },
    async timedMembers(family, table) {
      const args = ['-j', 'list', 'sets', 'table', family === 6 ? 'ip6' : 'ip', table];
      const text = await run(nft, args, '', MAX_SETS).catch((error: unknown) => {
        if (/No such file or directory/.test(messageOf(error))) return '{}';
        throw error;
      });
      return timedMembersOf(text);
    },
    async outline(family, table) {
      const name = family === 'inet' ? 'inet' : family === 6 ? 'ip6' : 'ip';
      return run(nft, ['-s', '-t', 'list', 'table', name, table], '').catch((error: unknown) => {
        if (/No such file or directory/.test(messageOf(error))) return undefined;
        throw error;
      });
    },
    async routeServices(serviceCidr) {
      const family = serviceCidr.includes(':') ? '-6' : '-4';
      const present = await run(ip, [family, 'route', 'show', 'exact', serviceCidr], '');
      if (present.split('\n').some((line) => line.includes(` dev ${options.serviceRouteLink} `))) return;
      await run(ip, [family, 'route', 'replace', serviceCidr, 'dev', options.serviceRouteLink], '');
    },
  };
}

const MAX_STDERR = 4096;
const MAX_STDOUT = 1024 * 1024;
/** Maximum size of a list of sets. An affinity set has up to 65,535 clients. */
const MAX_SETS = 64 * 1024 * 1024;

const LISTED = object({ nftables: optional(list(object({ set: optional(object({ elem: optional(anything) })) }))) });
const TIMED = object({
  nftables: optional(
    list(
      object({
        set: optional(
          object({
            name: optional(text),
            elem: optional(
              list(object({ elem: optional(object({ val: optional(anything), expires: optional(anything) })) })),
            ),
          }),
        ),
      }),
    ),
  ),
});

/** Members of sets, from nft's JSON output (libnftables-json(5)). */
function elementsOf(json: string): string[] {
  const { nftables = [] } = decodeJson(LISTED, json, 'nft');
  const members = nftables.flatMap(({ set }): readonly unknown[] => (Array.isArray(set?.elem) ? set.elem : []));
  return members.flatMap((each) => {
    const member = each as { readonly elem?: { readonly val?: unknown }; readonly concat?: unknown };
    const { concat } = (member.elem?.val ?? member) as { readonly concat?: unknown };
    return Array.isArray(concat) ? [concat.join(' . ')] : [];
  });
}

/** Members that expire, by set, from nft's JSON output (libnftables-json(5)). */
function timedMembersOf(json: string): TimedMembers {
  const { nftables = [] } = decodeJson(TIMED, json, 'nft');
  const found = new Map<string, ReadonlyMap<string, number>>();
  for (const { set } of nftables) {
    const members = new Map<string, number>();
    for (const { elem } of set?.elem ?? [])
      if (typeof elem?.val === 'string' && typeof elem.expires === 'number') members.set(elem.val, elem.expires);
    if (set?.name !== undefined && members.size > 0) found.set(set.name, members);
  }
  return found;
}

/**
 * Runs a tool with `input` on stdin and returns its output. Throws CodedError 'packet-filter' with the first line of
 * its error output.
 */
function run(file: string, args: readonly string[], input: string, maxStdout = MAX_STDOUT): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    child.on('error', (error) =>
      reject(new CodedError('packet-filter', `${file}: ${error.message}`, { cause: error })),
    );
    // A child that could not be started for lack of file descriptors has no streams.
    if (child.pid === undefined) return;
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < maxStdout) stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (stderr.length < MAX_STDERR) stderr += text;
    });
    child.on('close', (code) => {
      if (code === 0) resolve(stdout);
      else
        reject(
          new CodedError('packet-filter', `${file} ${args.join(' ')}: ${stderr.split('\n')[0] ?? ''} (exit ${code})`),
        );
    });
    // If the tool exits before it has read everything, its exit code reports the failure.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}
