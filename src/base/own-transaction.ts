/**
 * Name of a table that never exists after a transaction: each transaction of this program creates and deletes it, so
 * that events of the packet filter show whose transaction they belong to.
 */
export const OWN_MARK = 'inet hyperedge-own';

/** nft program with a mark by which the packet filter's watch recognizes the transaction as this program's own. */
export const ownTransaction = (program: string): string =>
  `add table ${OWN_MARK}\ndelete table ${OWN_MARK}\n${program}`;
