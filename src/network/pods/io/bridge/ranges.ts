import { BlockList, isIP } from 'node:net';

/** Whether `address` is in the range `cidr`; false for values that are not addresses, such as `default`. */
export function contains(cidr: string, address: string): boolean {
  const family = isIP(address);
  const [base = '', bits = ''] = cidr.split('/');
  if (family === 0 || isIP(base) !== family) return false;
  const range = new BlockList();
  const name = family === 4 ? 'ipv4' : 'ipv6';
  range.addSubnet(base, Number(bits), name);
  return range.check(address, name);
}
