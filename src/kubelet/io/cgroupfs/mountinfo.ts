import type { Hierarchy } from '../../core/cgroups/port.ts';

const MOUNT_OPTIONS = new Set([
  'rw',
  'ro',
  'xattr',
  'noprefix',
  'clone_children',
  'nsdelegate',
  'memory_recursiveprot',
]);

/**
 * Finds the cgroup hierarchies in the text of /proc/self/mountinfo (proc(5)). Type `cgroup` is a v1 hierarchy, whose
 * super options name its controllers. `cgroup2` is the unified hierarchy, whose controllers are in a file and are left
 * empty here. If a hierarchy is mounted several times, the first mount is used.
 */
export function parseHierarchies(mountinfo: string): Hierarchy[] {
  const found = new Map<string, Hierarchy>();
  for (const line of mountinfo.split('\n')) {
    const separator = line.indexOf(' - ');
    if (separator < 0) continue;
    const mount = unescapeMount(line.slice(0, separator).split(' ')[4] ?? '');
    const [type, , superOptions = ''] = line.slice(separator + 3).split(' ');
    if (type === 'cgroup') {
      const controllers = superOptions
        .split(',')
        .filter((option) => !MOUNT_OPTIONS.has(option) && !option.startsWith('release_agent='));
      const key = controllers.join(',');
      if (!found.has(key)) found.set(key, { mount, version: 'v1', controllers });
    } else if (type === 'cgroup2' && !found.has('cgroup2')) {
      found.set('cgroup2', { mount, version: 'v2', controllers: [] });
    }
  }
  return [...found.values()];
}

/** Decodes the octal escapes of space, tab, newline and backslash. */
function unescapeMount(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
