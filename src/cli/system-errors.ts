/** Error texts for administrators. Replaces names of system calls and error numbers with the cause and a fix. */

interface Cause {
  readonly text: string;
  readonly fix?: string;
}

const CAUSES: Readonly<Record<string, Cause>> = {
  ENOENT: { text: 'does not exist', fix: 'check the path' },
  ENOTDIR: { text: 'a part of the path is not a directory', fix: 'check the path' },
  EISDIR: { text: 'is a directory', fix: 'give a file' },
  EEXIST: { text: 'exists already', fix: 'remove it or give another path' },
  EACCES: { text: 'permission denied', fix: 'run the command as root' },
  EPERM: { text: 'not permitted', fix: 'run the command as root' },
  ENOSPC: { text: 'the file system is full', fix: 'free disk space' },
  EDQUOT: { text: 'the disk quota is used up', fix: 'free disk space' },
  EROFS: { text: 'the file system is read-only', fix: 'remount it writable, or give another path' },
  EIO: { text: 'the disk reports an I/O error', fix: 'see journalctl -k' },
  EMFILE: { text: 'too many open files', fix: 'raise LimitNOFILE' },
  EBUSY: { text: 'is in use', fix: 'stop the process that uses it' },
  EXDEV: { text: 'is on another file system', fix: 'give a path on the same file system' },
  EADDRINUSE: { text: 'is used by another process', fix: 'find it with ss -tulpn' },
  EADDRNOTAVAIL: { text: 'is not an address of this host', fix: 'see ip addr' },
  ECONNREFUSED: { text: 'refuses connections', fix: 'check that the server runs and the port is right' },
  ECONNRESET: { text: 'closed the connection', fix: 'check the port and the log of the server' },
  EHOSTUNREACH: { text: 'cannot be reached', fix: 'check address and route' },
  ENETUNREACH: { text: 'cannot be reached', fix: 'check address and route' },
  ETIMEDOUT: { text: 'did not answer in time', fix: 'check address and firewall' },
  ENOTFOUND: { text: 'is not a known host name', fix: 'check the name and the DNS servers' },
  EAI_AGAIN: { text: 'cannot be resolved', fix: 'check the name and the DNS servers' },
};

/**
 * Matches Node's file errors, such as `ENOENT: no such file or directory, open '/a'`. A rename or link has a second
 * path.
 */
const FILE_ERROR = /\b(E[A-Z]+): [a-z][^,;:]*, [a-z]+(?: '([^']*)'(?: -> '([^']*)')?)?/g;
/**
 * Matches Node's socket errors, such as `connect ECONNREFUSED 127.0.0.1:1` or `listen EADDRINUSE: address already in
 * use 0.0.0.0:80`.
 */
const SOCKET_ERROR = /\b(?:connect|listen|bind|read|getaddrinfo) (E[A-Z_]+)(?::(?: [a-z]+)+)?(?: ([^\s;,)]+))?/g;

export function withoutSystemErrors(message: string): string {
  const fixes = new Set<string>();
  const explain = (whole: string, code: string, subject: string, before: string): string => {
    const cause = CAUSES[code];
    if (cause === undefined) return whole;
    if (cause.fix !== undefined) fixes.add(cause.fix);
    return subject === '' || before.includes(subject) ? cause.text : `${subject} ${cause.text}`;
  };
  const files = message.replaceAll(FILE_ERROR, (whole, code: string, first = '', second = '', at: number) =>
    explain(whole, code, second === '' ? first : `${first} to ${second}`, message.slice(0, at)),
  );
  const text = files.replaceAll(SOCKET_ERROR, (whole, code: string, address = '', at: number) =>
    explain(whole, code, address, files.slice(0, at)),
  );
  // A message that already contains a fix is not extended.
  return fixes.size === 0 || text.includes('; ') ? text : `${text}; ${[...fixes].join(', ')}`;
}
