import type { ReactElement } from 'react';

import { text } from '../i18n/en';

interface CommitLike {
  commit: string;
  author: string;
  message: string;
}

/** A commit as people recognise it: short hash, first line, author. */
export function Commit({ revision }: { revision: CommitLike | null | undefined }): ReactElement {
  if (!revision || revision.commit === '') return <span className="muted">{text.journey.uploaded}</span>;
  return (
    <span className="commit grow">
      <span className="hash" title={revision.commit}>
        {revision.commit.slice(0, 8)}
      </span>
      <b className="truncate" title={revision.message}>
        {revision.message.split('\n')[0]}
      </b>
      <span className="muted small nowrap hide-narrow">{revision.author.replace(/\s*<.*>$/, '')}</span>
    </span>
  );
}
